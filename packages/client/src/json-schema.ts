/** The subset of JSON Schema that a client tool's parameters may use. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: { readonly [name: string]: JsonSchema };
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly [keyword: string]: unknown;
}

/** Parameters of a tool: always an object. */
export interface ToolParameters extends JsonSchema {
  readonly type: 'object';
}

/**
 * The TypeScript type of the values that a JSON Schema allows, for a simple subset: types, enums, constants,
 * arrays, nested objects with `required`. Anything else is `unknown`.
 */
export type FromSchema<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: ReadonlyArray<infer E> }
    ? E
    : S extends { readonly type: ReadonlyArray<infer T> }
      ? T extends string
        ? FromSchema<Omit<S, 'type'> & { readonly type: T }>
        : unknown
      : S extends { readonly type: 'string' }
        ? string
        : S extends { readonly type: 'number' | 'integer' }
          ? number
          : S extends { readonly type: 'boolean' }
            ? boolean
            : S extends { readonly type: 'null' }
              ? null
              : S extends { readonly type: 'array' }
                ? S extends { readonly items: infer I }
                  ? FromSchema<I>[]
                  : unknown[]
                : S extends { readonly type: 'object' }
                  ? FromObject<S>
                  : unknown;

type FromObject<S> = S extends { readonly properties: infer P }
  ? string extends keyof P
    ? Record<string, unknown>
    : Flat<
        { -readonly [K in keyof P as K extends RequiredOf<S> ? K : never]: FromSchema<P[K]> } & {
          -readonly [K in keyof P as K extends RequiredOf<S> ? never : K]?: FromSchema<P[K]>;
        }
      >
  : Record<string, unknown>;

type RequiredOf<S> = S extends { readonly required: ReadonlyArray<infer R> } ? R : never;

type Flat<T> = { [K in keyof T]: T[K] };
