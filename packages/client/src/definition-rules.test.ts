import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { safeValidateToolDefinitions, validateToolDefinitions } from './definition-rules.js';
import { ValidationError } from './error.js';

const tool = (more: Record<string, unknown> = {}) => ({
  name: 'search_database',
  description: 'Searches.',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
  ...more,
});

/** What is wrong, as pointers. */
function faults(tools: unknown): string[] {
  const checked = safeValidateToolDefinitions(tools);
  return checked.success ? [] : checked.errors.map(({ pointer }) => pointer);
}

const nested = (levels: number): unknown =>
  levels === 0 ? { type: 'string' } : { type: 'object', properties: { inner: nested(levels - 1) } };
const wide = (count: number) => ({
  type: 'object',
  properties: Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`p${index}`, { type: 'null' }]),
  ),
});

test('valid definitions are given back', () => {
  const tools = [tool(), tool({ name: 'other' })];
  expect(validateToolDefinitions(tools)).toBe(tools);
  expect(safeValidateToolDefinitions(tools)).toEqual({ success: true, data: tools });
});
test('invalid ones are thrown with everything that is wrong', () => {
  const broken = [tool({ name: '' }), tool({ description: 'x'.repeat(1025) })];
  const attempt = () => validateToolDefinitions(broken);
  expect(attempt).toThrow(ValidationError);
  expect(attempt).toThrow(/\/0\/name: .*\/1\/description: .*got 1025/);
});
test('something else than a list is refused', () => expect(faults({})).toEqual(['']));
test('something else than a tool is refused', () => expect(faults([7, null])).toEqual(['/0', '/1']));
test('names are unique', () => expect(faults([tool(), tool()])).toEqual(['/1']));
test('parameters are of type object', () => {
  expect(faults([tool({ parameters: { type: 'string' } })])).toEqual(['/0/parameters']);
  expect(faults([tool({ parameters: undefined })])).toEqual(['/0/parameters']);
});
test('five levels are allowed, six are not', () => {
  expect(faults([tool({ parameters: nested(5) })])).toEqual([]);
  expect(faults([tool({ parameters: nested(6) })])).toHaveLength(1);
});
test('twenty properties are allowed, more are not', () => {
  expect(faults([tool({ parameters: wide(20) })])).toEqual([]);
  expect(faults([tool({ parameters: wide(21) })])).toEqual(['/0/parameters/properties']);
});
test('references are refused', () => {
  const parameters = { type: 'object', properties: { 'a/b': { $ref: '#' } } };
  expect(faults([tool({ parameters })])).toEqual(['/0/parameters/properties/a~1b/$ref']);
});
test('unknown types are refused, also in lists', () => {
  const parameters = { type: 'object', properties: { a: { type: ['string', 'date'] } } };
  expect(faults([tool({ parameters })])).toEqual(['/0/parameters/properties/a/type/1']);
});
test('the output schema is looked at too', () => {
  expect(faults([tool({ outputSchema: { type: 'array', items: { type: 'strange' } } })])).toEqual([
    '/0/outputSchema/items/type',
  ]);
});

const samples = readFileSync(
  new URL('../../../crates/kernel/tests/samples/client-definitions.jsonl', import.meta.url),
  'utf8',
);
test.each(
  samples
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line)),
)("faults are told in the gateway's words: $title", ({ tools, faults: expected }) => {
  const checked = safeValidateToolDefinitions(tools);
  expect(checked.success ? [] : checked.errors).toEqual(expected);
});
