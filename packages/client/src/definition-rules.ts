import { CODES, ValidationError } from './error.js';
import type { ClientToolDefinition } from './tool.js';
import type { Fault } from './wire.js';

/** The gateway's default limits on client tools. */
export const NAME_PATTERN: RegExp = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
export const DESCRIPTION_LENGTH_MAX = 1024;
export const SCHEMA_DEPTH_MAX = 5;
export const PROPERTIES_MAX = 20;
export const SCHEMA_TYPES: ReadonlySet<string> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
  'array',
  'object',
  'null',
]);

/** Valid definitions, or all problems. */
export type Validation =
  | { success: true; data: ClientToolDefinition[] }
  | { success: false; errors: Fault[] };

/** Returns the definitions if they are valid. Throws a `ValidationError` that lists all problems. */
export function validateToolDefinitions(tools: unknown): ClientToolDefinition[] {
  const checked = safeValidateToolDefinitions(tools);
  if (checked.success) return checked.data;
  const problems = checked.errors.map(({ pointer, message }) => `${pointer || '/'}: ${message}`).join('; ');
  throw new ValidationError(CODES.validation, `the tool definitions are not valid: ${problems}`, {
    errors: checked.errors,
  });
}

/**
 * Checks what the gateway would reject: names, descriptions, the shape of the parameters, nesting. The
 * gateway decides; this reports the same problems earlier.
 */
export function safeValidateToolDefinitions(tools: unknown): Validation {
  if (!Array.isArray(tools)) {
    return {
      success: false,
      errors: [{ pointer: '', message: `expected an array of tools, got ${shown(tools)}` }],
    };
  }
  const errors: Fault[] = [];
  const names = new Set<string>();
  tools.forEach((tool: unknown, index) => {
    const pointer = `/${index}`;
    if (!isRecord(tool)) {
      errors.push({ pointer, message: `expected a tool, got ${shown(tool)}` });
      return;
    }
    errors.push(...faultsOfTool(tool, pointer));
    const { name } = tool;
    if (typeof name === 'string' && names.size === names.add(name).size) {
      errors.push({ pointer: `${pointer}/name`, message: `two tools are named "${name}"` });
    }
  });
  return errors.length === 0
    ? { success: true, data: tools as ClientToolDefinition[] }
    : { success: false, errors };
}

function faultsOfTool(tool: Record<string, unknown>, pointer: string): Fault[] {
  const faults: Fault[] = [];
  const { name, description, parameters } = tool;
  if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
    const rule = 'expected 1 to 64 letters, digits, "_" or "-", not starting with a digit or "-"';
    faults.push({ pointer: `${pointer}/name`, message: `${rule}; got ${shown(name)}` });
  }
  const length = typeof description === 'string' ? [...description].length : 0;
  if (length < 1 || length > DESCRIPTION_LENGTH_MAX) {
    const message = `expected a string of 1 to ${DESCRIPTION_LENGTH_MAX} characters, got ${typeof description === 'string' ? length : shown(description)}`;
    faults.push({ pointer: `${pointer}/description`, message });
  }
  if (!isRecord(parameters) || parameters.type !== 'object') {
    const message = `expected a JSON Schema of type "object", got ${shown(parameters)}`;
    faults.push({ pointer: `${pointer}/parameters`, message });
  } else faults.push(...faultsOfSchema(parameters, `${pointer}/parameters`, 0));
  if (isRecord(tool.outputSchema))
    faults.push(...faultsOfSchema(tool.outputSchema, `${pointer}/outputSchema`, 0));
  return faults;
}

function faultsOfSchema(schema: unknown, pointer: string, depth: number): Fault[] {
  if (depth > SCHEMA_DEPTH_MAX) {
    return [{ pointer, message: `the schema is nested deeper than ${SCHEMA_DEPTH_MAX} levels` }];
  }
  if (!isRecord(schema)) {
    return typeof schema === 'boolean' ? [] : [{ pointer, message: 'a schema is an object, true or false' }];
  }
  const faults: Fault[] = [];
  for (const type of [schema.type ?? []].flat()) {
    if (!SCHEMA_TYPES.has(String(type))) {
      faults.push({ pointer: `${pointer}/type`, message: `there is no type ${shown(type)}` });
    }
  }
  for (const keyword of ['$ref', '$dynamicRef']) {
    if (keyword in schema) {
      const message = `${keyword} is not allowed in a client tool, write the schema out`;
      faults.push({ pointer: `${pointer}/${keyword}`, message });
    }
  }
  const count = isRecord(schema.properties) ? Object.keys(schema.properties).length : 0;
  if (count > PROPERTIES_MAX) {
    const message = `${count} properties in one object, at most ${PROPERTIES_MAX} are allowed`;
    faults.push({ pointer: `${pointer}/properties`, message });
  }
  for (const [place, part] of subschemas(schema))
    faults.push(...faultsOfSchema(part, pointer + place, depth + 1));
  return faults;
}

/** Keywords whose value is a schema, an array of schemas, or an object of schemas. */
const SINGLE = [
  'items',
  'contains',
  'additionalProperties',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
] as const;
const LISTS = ['prefixItems', 'allOf', 'anyOf', 'oneOf'] as const;
const MAPS = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'] as const;

/** The direct subschemas of a schema, each with its JSON pointer. */
export function* subschemas(schema: Record<string, unknown>): Generator<[place: string, schema: unknown]> {
  for (const keyword of SINGLE) if (keyword in schema) yield [`/${keyword}`, schema[keyword]];
  for (const keyword of LISTS) {
    const list = schema[keyword];
    if (Array.isArray(list)) for (const [index, part] of list.entries()) yield [`/${keyword}/${index}`, part];
  }
  for (const keyword of MAPS) {
    const map = schema[keyword];
    if (isRecord(map))
      for (const [name, part] of Object.entries(map)) yield [`/${keyword}/${escaped(name)}`, part];
  }
}

/** Whether a value is an object with members. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

const SHOWN_LENGTH_MAX = 60;

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : (JSON.stringify(value) ?? typeof value);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
}
