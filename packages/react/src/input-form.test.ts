import { expect, test } from 'vitest';
import { changed, fieldsOf, inputOf } from './input-form.js';

test('an input that nobody changed comes back as it was', () => {
  for (const input of [{ a: 'x', b: 2, c: false, d: null, e: { f: [1] } }, {}, 'text', 7, [1, 2]]) {
    expect(inputOf(fieldsOf(input))).toEqual({ value: input });
  }
});

test('a change keeps the kind of its field', () => {
  const fields = changed(fieldsOf({ amount: 5, note: '5' }), 'amount', '4.5');
  expect(inputOf(changed(fields, 'note', '6'))).toEqual({ value: { amount: 4.5, note: '6' } });
});

test('what cannot be read is told', () => {
  expect(inputOf(changed(fieldsOf({ amount: 5 }), 'amount', 'much'))).toEqual({
    problem: 'amount: expected a number',
  });
  expect(inputOf(changed(fieldsOf({ list: [1] }), 'list', '[1'))).toEqual({ problem: 'list: expected JSON' });
});
