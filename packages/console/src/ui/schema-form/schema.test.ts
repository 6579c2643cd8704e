import { expect, test } from 'vitest';
import { choicesOf, chosenIndex, initialValue, kindOf, resolve, type Schema, schemaOf } from './schema.ts';

const PAYMENT: Schema = {
  oneOf: [
    { type: 'object', properties: { kind: { const: 'card' } }, required: ['kind'] },
    {
      type: 'object',
      properties: { kind: { const: 'invoice' }, vat: { type: 'string' } },
      required: ['kind', 'vat'],
    },
  ],
};

test('a form begins with defaults and what is required, and nothing else', () => {
  const schema: Schema = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      count: { type: 'integer', default: 3 },
      tags: { type: 'array', items: { type: 'string' } },
      pay: PAYMENT,
    },
    required: ['name', 'pay'],
  };
  expect(initialValue(schema, schema)).toEqual({ count: 3, pay: { kind: 'card' } });
});

test('a reference leads to its schema, also through others, and one to nowhere to any value', () => {
  const root: Schema = { $defs: { a: { $ref: '#/$defs/b' }, b: { type: 'integer' } } };
  expect(kindOf(resolve({ $ref: '#/$defs/a' }, root))).toBe('integer');
  expect(kindOf(resolve({ $ref: '#/$defs/none' }, root))).toBe('json');
  expect(kindOf(resolve({ $ref: 'https://example.com/x' }, root))).toBe('json');
});

test('a schema that refers to itself has an end', () => {
  const root: Schema = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
  expect(initialValue(root, root)).toBeTypeOf('object');
  expect(resolve({ $ref: '#/$defs/x' }, { $defs: { x: { $ref: '#/$defs/x' } } })).toBeTypeOf('object');
});

test('the alternative that a value fits is chosen', () => {
  const choices = choicesOf(PAYMENT, PAYMENT) ?? [];
  expect(chosenIndex(choices, { kind: 'invoice', vat: 'x' })).toBe(1);
  expect(chosenIndex(choicesOf({ type: ['string', 'null'] }, {}) ?? [], null)).toBe(1);
});

test('a schema is made from an example', () => {
  expect(schemaOf({ a: 'x', b: [1] })).toEqual({
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'array', items: { type: 'number' } } },
  });
});
