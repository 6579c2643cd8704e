import { isRecord } from '../definition-rules.js';

/**
 * The reason why `content` does not match the schema of a question, or `undefined` if it does. Knows the schemas that the
 * protocol allows there: a flat object of strings, numbers, booleans, choices and lists of choices. A `pattern` is left to
 * the server: one that takes long would stop this program.
 */
export function faultOfContent(schema: unknown, content: unknown): string | undefined {
  if (!isRecord(content)) return 'expected an object';
  const { properties, required } = isRecord(schema) ? schema : {};
  const known = isRecord(properties) ? properties : {};
  for (const name of Array.isArray(required) ? required : []) {
    if (content[String(name)] === undefined) return `"${name}" is missing`;
  }
  for (const [name, value] of Object.entries(content)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(known, name)) return `"${name}" was not asked for`;
    const fault = faultOfValue(known[name], value);
    if (fault) return `"${name}": ${fault}`;
  }
  return undefined;
}

function faultOfValue(schema: unknown, value: unknown): string | undefined {
  if (!isRecord(schema)) return undefined;
  switch (schema.type) {
    case 'string':
      return typeof value === 'string' ? faultOfText(schema, value) : 'expected a string';
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'expected true or false';
    case 'integer':
      return Number.isInteger(value) ? faultOfNumber(schema, value as number) : 'expected an integer';
    case 'number':
      return Number.isFinite(value) ? faultOfNumber(schema, value as number) : 'expected a number';
    case 'array':
      return Array.isArray(value) ? faultOfList(schema, value) : 'expected a list';
    default:
      return undefined;
  }
}

function faultOfText(schema: Record<string, unknown>, value: string): string | undefined {
  const length = [...value].length;
  const { minLength, maxLength, format } = schema;
  if (typeof minLength === 'number' && length < minLength) return `shorter than ${minLength} characters`;
  if (typeof maxLength === 'number' && length > maxLength) return `longer than ${maxLength} characters`;
  const choices = choicesOf(schema);
  if (choices && !choices.includes(value)) return 'not one of the choices';
  const fits = typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  return fits && !fits(value) ? `not of the format "${format}"` : undefined;
}

function faultOfNumber({ minimum, maximum }: Record<string, unknown>, value: number): string | undefined {
  if (typeof minimum === 'number' && value < minimum) return `less than ${minimum}`;
  if (typeof maximum === 'number' && value > maximum) return `more than ${maximum}`;
  return undefined;
}

function faultOfList(schema: Record<string, unknown>, value: unknown[]): string | undefined {
  const { minItems, maxItems, items } = schema;
  if (typeof minItems === 'number' && value.length < minItems) return `fewer than ${minItems} items`;
  if (typeof maxItems === 'number' && value.length > maxItems) return `more than ${maxItems} items`;
  const choices = isRecord(items) ? choicesOf(items) : undefined;
  return choices && !value.every((item) => choices.includes(item)) ? 'not all of the choices' : undefined;
}

/** The values that `enum`, or the constants of `oneOf` and `anyOf`, allow. */
function choicesOf({ enum: values, oneOf, anyOf }: Record<string, unknown>): unknown[] | undefined {
  if (Array.isArray(values)) return values;
  const options = oneOf ?? anyOf;
  return Array.isArray(options)
    ? options.map((option) => (isRecord(option) ? option.const : undefined))
    : undefined;
}

const FORMATS: Record<string, (text: string) => boolean> = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => URL.canParse(text),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  'date-time': (text) => /^\d{4}-\d\d-\d\d[Tt ]/.test(text) && !Number.isNaN(Date.parse(text)),
};
