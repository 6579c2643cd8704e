/** One member of an input, as a person edits it. */
export interface Field {
  readonly name: string;
  readonly kind: 'text' | 'number' | 'boolean' | 'json';
  readonly text: string;
}

/** The fields of an input. A value that is not an object is a single field. */
export function fieldsOf(value: unknown): readonly Field[] {
  return isObject(value) ? Object.entries(value).map(fieldOf) : [fieldOf([WHOLE, value])];
}

/** `fields` with another text for one of them. */
export function changed(fields: readonly Field[], name: string, text: string): readonly Field[] {
  return fields.map((field) => (field.name === name ? { ...field, text } : field));
}

/** The input that the fields describe, or the problem of the first invalid one. */
export function inputOf(fields: readonly Field[]): { value: unknown } | { problem: string } {
  const members: [string, unknown][] = [];
  for (const field of fields) {
    const member = memberOf(field);
    if ('problem' in member) return member;
    members.push([field.name, member.value]);
  }
  return {
    value: fields.length === 1 && fields[0]?.name === WHOLE ? members[0]?.[1] : Object.fromEntries(members),
  };
}

/** Name of the single field of a value that is not an object. No tool parameter has this name. */
const WHOLE = '(value)';

function fieldOf([name, value]: [string, unknown]): Field {
  switch (typeof value) {
    case 'string':
      return { name, kind: 'text', text: value };
    case 'number':
      return { name, kind: 'number', text: String(value) };
    case 'boolean':
      return { name, kind: 'boolean', text: String(value) };
    default:
      return { name, kind: 'json', text: JSON.stringify(value, null, 2) };
  }
}

function memberOf({ name, kind, text }: Field): { value: unknown } | { problem: string } {
  if (kind === 'text') return { value: text };
  try {
    const value: unknown = JSON.parse(text);
    if (kind === 'number' && typeof value !== 'number') return { problem: `${name}: expected a number` };
    return { value };
  } catch {
    return { problem: `${name}: expected ${kind === 'number' ? 'a number' : 'JSON'}` };
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
