import { CODES, ValidationError } from './error.js';
import type { ClientToolDefinition } from './tool.js';
import type { Fault } from './wire.js';

/** The gateway's default limits on client tools. */
export const NAME_PATTERN: RegExp = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
export const DESCRIPTION_LENGTH_MAX = 1024;
export const SCHEMA_DEPTH_MAX = 5;
export const PROPERTIES_MAX = 20;
const PATTERNS_MAX = 10;
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
  const names = new Map<string, string>();
  tools.forEach((tool: unknown, index) => {
    const pointer = `/${index}`;
    if (!isRecord(tool)) {
      const message = `a tool must be an object with a name, a description and parameters, got ${kind(tool)}`;
      errors.push({ pointer, message });
      return;
    }
    const faults = faultsOfTool(tool, pointer);
    errors.push(...faults);
    const { name } = tool;
    if (typeof name !== 'string' || faults.length > 0) return;
    const other = names.get(name.toLowerCase());
    names.set(name.toLowerCase(), name);
    if (other === name) errors.push({ pointer, message: `two tools are named "${name}"` });
    else if (other !== undefined)
      errors.push({ pointer, message: `"${name}" differs from "${other}" only in case` });
  });
  return errors.length === 0
    ? { success: true, data: tools as ClientToolDefinition[] }
    : { success: false, errors };
}

function faultsOfTool(tool: Record<string, unknown>, pointer: string): Fault[] {
  const faults = [...faultsOfName(tool.name, pointer), ...faultsOfDescription(tool.description, pointer)];
  const { parameters, outputSchema } = tool;
  if (!isRecord(parameters) || parameters.type !== 'object') {
    const message = 'the input of a tool is an object: its schema must say "type": "object"';
    faults.push({ pointer: `${pointer}/parameters`, message });
  }
  if (isRecord(parameters)) faults.push(...faultsOfWholeSchema(parameters, `${pointer}/parameters`));
  if (isRecord(outputSchema)) faults.push(...faultsOfWholeSchema(outputSchema, `${pointer}/outputSchema`));
  return faults;
}

function faultsOfName(name: unknown, tool: string): Fault[] {
  if (name === undefined || name === null) return [{ pointer: tool, message: 'a tool needs a name' }];
  const pointer = `${tool}/name`;
  if (typeof name !== 'string') return [{ pointer, message: `expected a name, got ${shown(name)}` }];
  if (NAME_PATTERN.test(name)) return [];
  const rule = 'use 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _, as in "search_orders"';
  return [{ pointer, message: `${JSON.stringify(name.slice(0, NAME_SHOWN_MAX))} is not a name; ${rule}` }];
}

function faultsOfDescription(description: unknown, tool: string): Fault[] {
  if (description === undefined || description === null) {
    const message = 'a tool needs a description, for the model to know when to use it';
    return [{ pointer: tool, message }];
  }
  const pointer = `${tool}/description`;
  if (typeof description !== 'string')
    return [{ pointer, message: `expected a text, got ${kind(description)}` }];
  const { length } = [...description];
  const blank = description.trim() === '';
  if (!blank && length <= DESCRIPTION_LENGTH_MAX) return [];
  const seen = blank ? 'a blank one' : length;
  return [{ pointer, message: `expected a text of 1 to ${DESCRIPTION_LENGTH_MAX} characters, got ${seen}` }];
}

function faultsOfWholeSchema(schema: Record<string, unknown>, pointer: string): Fault[] {
  const faults = faultsOfSchema(schema, pointer, 0);
  const patterns = patternsIn(schema, 0);
  if (patterns > PATTERNS_MAX) {
    const message = `the schema has ${patterns} patterns; at most ${PATTERNS_MAX} are allowed`;
    faults.push({ pointer, message });
  }
  return faults;
}

function patternsIn(schema: unknown, depth: number): number {
  if (!isRecord(schema) || depth > SCHEMA_DEPTH_MAX) return 0;
  const { pattern, patternProperties } = schema;
  let count = typeof pattern === 'string' ? 1 : 0;
  if (isRecord(patternProperties)) count += Object.keys(patternProperties).length;
  for (const [, part] of subschemas(schema)) count += patternsIn(part, depth + 1);
  return count;
}

function faultsOfSchema(schema: unknown, pointer: string, depth: number): Fault[] {
  if (depth > SCHEMA_DEPTH_MAX) {
    return [{ pointer, message: `the schema is nested deeper than ${SCHEMA_DEPTH_MAX} levels` }];
  }
  if (!isRecord(schema)) {
    return typeof schema === 'boolean' ? [] : [{ pointer, message: 'a schema is an object, true or false' }];
  }
  const faults = faultsOfType(schema.type, `${pointer}/type`);
  for (const keyword of ['$ref', '$dynamicRef']) {
    if (keyword in schema) {
      const message = `${keyword} is not allowed here; write out what it stands for`;
      faults.push({ pointer: `${pointer}/${keyword}`, message });
    }
  }
  const count = isRecord(schema.properties) ? Object.keys(schema.properties).length : 0;
  if (count > PROPERTIES_MAX) {
    const message = `${count} properties in one object; at most ${PROPERTIES_MAX} are allowed`;
    faults.push({ pointer: `${pointer}/properties`, message });
  }
  for (const [place, part] of subschemas(schema))
    faults.push(...faultsOfSchema(part, pointer + place, depth + 1));
  return faults;
}

function faultsOfType(type: unknown, pointer: string): Fault[] {
  const fault = (name: unknown, place: string): Fault[] => {
    if (SCHEMA_TYPES.has(String(name))) return [];
    const message = `${shown(name)} is not a type; use one of ${[...SCHEMA_TYPES].join(', ')}`;
    return [{ pointer: place, message }];
  };
  if (type === undefined) return [];
  return Array.isArray(type)
    ? type.flatMap((name, index) => fault(name, `${pointer}/${index}`))
    : fault(type, pointer);
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

/** Most characters of a text that a message quotes, and of a name that is none. */
const SHOWN_LENGTH_MAX = 64;
const NAME_SHOWN_MAX = 65;

/** A value as the gateway's messages show it. */
function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return kind(value);
  const characters = [...value];
  const cut = characters.slice(0, SHOWN_LENGTH_MAX).join('');
  return JSON.stringify(characters.length > SHOWN_LENGTH_MAX ? `${cut}…` : value);
}

/** The JSON type of a value, with its article. */
function kind(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  const names: Record<string, string> = { string: 'a text', number: 'a number', boolean: 'a boolean' };
  return names[typeof value] ?? 'an object';
}
