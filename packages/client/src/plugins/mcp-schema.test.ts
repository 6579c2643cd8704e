import { expect, test } from 'vitest';
import { safeValidateToolDefinitions } from '../definition-rules.js';
import { simplified } from './mcp-schema.js';

/** Whatever comes in, what comes out is fit to be sent. */
function check(schema: unknown): ReturnType<typeof simplified> {
  const parameters = simplified(schema);
  expect(safeValidateToolDefinitions([{ name: 'x', description: 'x', parameters }])).toMatchObject({
    success: true,
  });
  return parameters;
}
const nested = (levels: number): unknown =>
  levels === 0 ? { type: 'string' } : { type: 'object', properties: { inner: nested(levels - 1) } };

test('what is within bounds stays as it is', () => {
  const schema = { type: 'object', properties: { a: { type: 'string', minLength: 1 } }, required: ['a'] };
  expect(check(schema)).toEqual(schema);
});
test('nothing becomes an object of anything', () => expect(check(undefined)).toEqual({ type: 'object' }));
test('references are written out', () => {
  const schema = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/name', description: 'Mine.' } },
    $defs: { name: { type: 'string', description: 'A name.' } },
  };
  expect(check(schema)).toEqual({
    type: 'object',
    properties: { a: { type: 'string', description: 'Mine.' } },
  });
});
test('references that go round, or nowhere, end', () => {
  const schema = {
    type: 'object',
    properties: {
      tree: { $ref: '#/$defs/tree' },
      lost: { $ref: '#/$defs/none' },
      remote: { $ref: 'http://x/y' },
    },
    $defs: { tree: { type: 'object', properties: { child: { $ref: '#/$defs/tree' } } } },
  };
  expect(check(schema).properties).toEqual({
    tree: { type: 'object', properties: { child: {} } },
    lost: {},
    remote: {},
  });
});
test('what is too deep is left out', () => check(nested(20)));
test('of too many properties the required are kept', () => {
  const names = Array.from({ length: 30 }, (_, index) => `p${index}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const kept = check({ type: 'object', properties, required: ['p29'], additionalProperties: false });
  expect(Object.keys(kept.properties ?? {})).toHaveLength(20);
  expect(kept.properties).toHaveProperty('p29');
  expect(kept).not.toHaveProperty('additionalProperties');
});
test('unknown types and patterns go', () => {
  expect(check({ type: 'object', properties: { a: { type: 'date', pattern: '(?=x)' } } }).properties).toEqual(
    { a: {} },
  );
});
test('a schema of a megabyte becomes an object of anything', () => {
  expect(check({ type: 'object', description: 'x'.repeat(1_000_000) })).toEqual({ type: 'object' });
});
