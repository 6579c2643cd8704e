/** A JSON Schema, as far as the form reads it. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly $ref?: string;
  readonly [keyword: string]: unknown;
}

/** How a value is edited. */
export type Kind =
  | 'string'
  | 'number'
  | 'integer'
  | 'boolean'
  | 'null'
  | 'enum'
  | 'const'
  | 'object'
  | 'array'
  | 'choice'
  | 'json';

const REFERENCES_MAX = 16;

/** The schema that a local `$ref` leads to, or the schema itself. A reference to nowhere is an empty schema. */
export function resolve(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let count = 0; found.$ref !== undefined && count < REFERENCES_MAX; count += 1) {
    const { $ref, ...beside } = found;
    found = { ...lookUp(root, $ref), ...beside };
  }
  return found;
}

function lookUp(root: Schema, reference: string): Schema {
  if (!reference.startsWith('#')) return {};
  let at: unknown = root;
  for (const part of reference.slice(1).split('/').filter(Boolean)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    at =
      typeof at === 'object' && at !== null && Object.hasOwn(at, name)
        ? (at as Record<string, unknown>)[name]
        : undefined;
  }
  return typeof at === 'object' && at !== null ? (at as Schema) : {};
}

/** The alternatives of a schema, `null` left out: `undefined` if it has none to choose from. */
export function choicesOf(schema: Schema, root: Schema): readonly Schema[] | undefined {
  const given = schema.oneOf ?? schema.anyOf;
  if (given) return given.map((choice) => resolve(choice, root));
  if (!Array.isArray(schema.type) || schema.type.length < 2) return undefined;
  return schema.type.map((type: string) => ({ ...schema, type }));
}

/** How a value of this schema is edited. */
export function kindOf(schema: Schema): Kind {
  if (schema.const !== undefined) return 'const';
  if (schema.enum) return 'enum';
  if (schema.oneOf || schema.anyOf || (Array.isArray(schema.type) && schema.type.length > 1)) return 'choice';
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'string':
    case 'number':
    case 'integer':
    case 'boolean':
    case 'null':
    case 'object':
    case 'array':
      return type;
    default:
      return schema.properties ? 'object' : schema.items ? 'array' : 'json';
  }
}

/** A value to begin with: the default, or the least that the schema asks for. */
export function initialValue(schema: Schema, root: Schema, depth = 0): unknown {
  const found = resolve(schema, root);
  if (found.default !== undefined) return structuredClone(found.default);
  switch (kindOf(found)) {
    case 'const':
      return found.const;
    case 'enum':
      return found.enum?.length === 1 ? found.enum[0] : undefined;
    case 'boolean':
      return false;
    case 'null':
      return null;
    case 'array':
      return [];
    case 'choice': {
      const [first] = choicesOf(found, root) ?? [];
      return first && depth < REFERENCES_MAX ? initialValue(first, root, depth + 1) : undefined;
    }
    case 'object':
      return depth < REFERENCES_MAX ? requiredMembers(found, root, depth) : {};
    default:
      return undefined;
  }
}

function requiredMembers(schema: Schema, root: Schema, depth: number): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const found = resolve(member, root);
    const isWanted = schema.required?.includes(name) || found.default !== undefined;
    const value = isWanted ? initialValue(found, root, depth + 1) : undefined;
    if (value !== undefined) members[name] = value;
  }
  return members;
}

/** Which of the alternatives a value looks like: its type, and the constants that tell objects apart. */
export function chosenIndex(choices: readonly Schema[], value: unknown): number {
  const exact = choices.findIndex((choice) => looksLike(choice, value));
  return Math.max(exact, 0);
}

function looksLike(schema: Schema, value: unknown): boolean {
  switch (kindOf(schema)) {
    case 'const':
      return schema.const === value;
    case 'enum':
      return schema.enum?.includes(value) ?? false;
    case 'string':
      return typeof value === 'string';
    case 'number':
      return typeof value === 'number';
    case 'integer':
      return Number.isInteger(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return (
        typeof value === 'object' && value !== null && !Array.isArray(value) && hasItsConstants(schema, value)
      );
    default:
      return true;
  }
}

function hasItsConstants(schema: Schema, value: object): boolean {
  const members = value as Record<string, unknown>;
  const known = Object.entries(schema.properties ?? {});
  const constants = known.filter(([, member]) => member.const !== undefined);
  if (constants.length > 0) return constants.every(([name, member]) => members[name] === member.const);
  return (schema.required ?? []).every((name) => name in members);
}

/** Name of an alternative for people. */
export function choiceName(schema: Schema, index: number): string {
  if (schema.title) return schema.title;
  if (schema.const !== undefined) return String(schema.const);
  const constant = Object.entries(schema.properties ?? {}).find(
    ([, { const: fixed }]) => fixed !== undefined,
  );
  if (constant) return `${constant[0]}: ${String(constant[1].const)}`;
  return typeof schema.type === 'string' ? schema.type : `Form ${index + 1}`;
}

/** A schema that describes a value by example, for inputs whose schema is unknown. */
export function schemaOf(value: unknown): Schema {
  if (value === null) return { type: 'null' };
  if (Array.isArray(value)) return { type: 'array', items: value.length > 0 ? schemaOf(value[0]) : {} };
  if (typeof value === 'object') {
    const properties = Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, schemaOf(member)]),
    );
    return { type: 'object', properties };
  }
  return { type: typeof value };
}
