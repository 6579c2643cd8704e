import { Validator } from '@cfworker/json-schema';
import { pointerTo } from '../json-tree.ts';
import type { Schema } from './schema.ts';

/** Messages by JSON pointer. */
export type Problems = Readonly<Record<string, string>>;

/** Keywords whose own message only says that something below is wrong. */
const WRAPPERS = new Set([
  'properties',
  'patternProperties',
  'additionalProperties',
  'items',
  'prefixItems',
  'contains',
  'allOf',
  '$ref',
  '$dynamicRef',
  'if',
  'then',
  'else',
  'dependentSchemas',
]);

/**
 * Everything that is wrong with a value, by its place. The validator interprets the schema, because a compiled one
 * would need `eval`, which the page's content security policy forbids. The gateway checks again.
 */
export function problemsOf(schema: Schema, value: unknown): Problems {
  const problems: Record<string, string> = {};
  let result: ReturnType<Validator['validate']>;
  try {
    result = new Validator(schema as object, '2020-12', false).validate(value);
  } catch {
    // A schema that this validator cannot read is left to the gateway.
    return problems;
  }
  for (const { keyword, instanceLocation, error } of result.errors) {
    const place = instanceLocation.replace(/^#/, '');
    const missing = keyword === 'required' ? /property "(.+)"/.exec(error)?.[1] : undefined;
    if (missing !== undefined) problems[pointerTo(place, missing)] ??= 'This is required.';
    else if (!WRAPPERS.has(keyword)) problems[place] ??= wording(keyword, error);
  }
  return problems;
}

function wording(keyword: string, error: string): string {
  switch (keyword) {
    case 'oneOf':
    case 'anyOf':
      return 'It fits none of the alternatives.';
    case 'false':
      return 'This member is not expected here.';
    default:
      return error
        .replace(/^Instance /, 'It ')
        .replace(/^String /, 'It ')
        .replace(/^Array /, 'It ');
  }
}
