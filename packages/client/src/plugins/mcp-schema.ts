import { isRecord, PROPERTIES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_TYPES } from '../definition-rules.js';
import type { ToolParameters } from '../json-schema.js';

const SCHEMA_BYTES_MAX = 16 * 1024;
/** References that are being inlined: none may be inlined inside itself. */
type Path = readonly string[];

/**
 * A server's input schema within the limits of client tools: references are inlined, parts that are too deep
 * or too many are removed. The gateway does not validate removed parts; the server still does.
 */
export function simplified(schema: unknown): ToolParameters {
  const root = isRecord(schema) ? schema : {};
  const whole = { ...(simplify(root, root, 0, []) as Record<string, unknown>), type: 'object' as const };
  return JSON.stringify(whole).length <= SCHEMA_BYTES_MAX ? whole : { type: 'object' };
}

function simplify(schema: unknown, root: Record<string, unknown>, depth: number, path: Path): unknown {
  if (!isRecord(schema)) return schema;
  const reference = schema.$ref;
  if (typeof reference === 'string') {
    const { $ref: _, ...beside } = schema;
    const target = path.includes(reference) ? {} : (find(root, reference) ?? {});
    const merged = isRecord(target) ? { ...target, ...beside } : beside;
    return simplify(merged, root, depth, [...path, reference]);
  }
  const inner = (part: unknown): unknown => simplify(part, root, depth + 1, path);
  const kept: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const part = simplifyKeyword(keyword, value, depth, inner);
    if (part !== undefined) kept[keyword] = part;
  }
  return withFewerProperties(kept);
}

/** The simplified value of a keyword; `undefined` removes it. */
function simplifyKeyword(
  keyword: string,
  value: unknown,
  depth: number,
  inner: (part: unknown) => unknown,
): unknown {
  const deepest = depth >= SCHEMA_DEPTH_MAX;
  switch (keyword) {
    case '$schema':
    case '$id':
    case '$defs':
    case 'definitions':
    case '$anchor':
    case '$dynamicAnchor':
    case '$dynamicRef':
    case '$comment':
    case 'examples':
    // Removed: the gateway's regular expressions support less than JavaScript's.
    case 'patternProperties':
    case 'pattern':
      return undefined;
    case 'type': {
      const known = [value].flat().filter((type) => SCHEMA_TYPES.has(String(type)));
      return known.length > 1 ? known : known[0];
    }
    case 'properties':
    case 'dependentSchemas':
      if (deepest || !isRecord(value)) return undefined;
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, inner(part)]));
    case 'allOf':
    case 'anyOf':
    case 'oneOf':
    case 'prefixItems':
      return deepest || !Array.isArray(value) ? undefined : value.map(inner);
    case 'items':
    case 'additionalProperties':
    case 'contains':
    case 'propertyNames':
    case 'not':
    case 'if':
    case 'then':
    case 'else':
      if (typeof value === 'boolean') return deepest ? undefined : value;
      return deepest || !isRecord(value) ? undefined : inner(value);
    default:
      return value;
  }
}

/** Keeps required properties, then the first ones. */
function withFewerProperties(schema: Record<string, unknown>): Record<string, unknown> {
  const { properties } = schema;
  if (!isRecord(properties) || Object.keys(properties).length <= PROPERTIES_MAX) return schema;
  const required = new Set(Array.isArray(schema.required) ? schema.required.map(String) : []);
  const names = Object.keys(properties).sort((a, b) => Number(required.has(b)) - Number(required.has(a)));
  const kept = names.slice(0, PROPERTIES_MAX);
  const { additionalProperties: _, ...rest } = schema;
  return { ...rest, properties: Object.fromEntries(kept.map((name) => [name, properties[name]])) };
}

function find(root: Record<string, unknown>, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  let place: unknown = root;
  for (const step of reference.slice(1).split('/').filter(Boolean)) {
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isRecord(place) || !Object.hasOwn(place, name)) return undefined;
    place = place[name];
  }
  return place;
}
