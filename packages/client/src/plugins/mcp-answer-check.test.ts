import { expect, test } from 'vitest';
import { faultOfContent } from './mcp-answer-check.js';

const property = (schema: object) => ({ type: 'object', properties: { a: schema } });
const choices = [{ const: 'x', title: 'X' }];

test.each<[schema: object, value: unknown, fault: string | undefined]>([
  [{ type: 'string' }, 'x', undefined],
  [{ type: 'string' }, 1, 'expected a string'],
  [{ type: 'string', minLength: 2 }, '👍', 'shorter than 2 characters'],
  [{ type: 'string', maxLength: 1 }, 'xy', 'longer than 1 characters'],
  [{ type: 'string', enum: ['x'] }, 'y', 'not one of the choices'],
  [{ type: 'string', oneOf: choices }, 'x', undefined],
  [{ type: 'string', oneOf: choices }, 'X', 'not one of the choices'],
  [{ type: 'string', format: 'email' }, 'nobody', 'not of the format "email"'],
  [{ type: 'string', format: 'uri' }, 'https://example.com', undefined],
  [{ type: 'string', format: 'date' }, '2026-13-01', 'not of the format "date"'],
  [{ type: 'string', format: 'date-time' }, '2026-11-18T10:00:00Z', undefined],
  [{ type: 'boolean' }, 'true', 'expected true or false'],
  [{ type: 'integer', minimum: 1 }, 1.5, 'expected an integer'],
  [{ type: 'integer', minimum: 1 }, 0, 'less than 1'],
  [{ type: 'number', maximum: 1 }, 2, 'more than 1'],
  [{ type: 'number' }, Number.NaN, 'expected a number'],
  [{ type: 'array', items: { enum: ['x'] }, minItems: 1 }, [], 'fewer than 1 items'],
  [{ type: 'array', items: { enum: ['x'] } }, ['x', 'y'], 'not all of the choices'],
  [{ type: 'array', items: { anyOf: choices }, maxItems: 1 }, ['x', 'x'], 'more than 1 items'],
])('%j and %j: %s', (schema, value, fault) => {
  expect(faultOfContent(property(schema), { a: value })).toBe(fault && `"a": ${fault}`);
});
test('what is required is there, and nothing that was not asked for', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
  expect(faultOfContent(schema, {})).toBe('"a" is missing');
  expect(faultOfContent(schema, { a: 'x', b: 'y' })).toBe('"b" was not asked for');
  expect(faultOfContent(schema, { a: 'x' })).toBeUndefined();
  expect(faultOfContent(schema, 'x')).toBe('expected an object');
});
