import { expect, test } from 'vitest';
import { childrenOf, matches, summary } from './json-tree.ts';

test('members have pointers that escape their names', () => {
  expect(childrenOf({ 'a/b': 1, 'c~d': 2 }, '/x').map(({ pointer }) => pointer)).toEqual([
    '/x/a~1b',
    '/x/c~0d',
  ]);
});

test('a search finds names and values, in order, up to a limit', () => {
  const value = { name: 'Ada', list: [{ title: 'adage' }, { other: 'no' }], ada: 1 };
  expect(matches(value, 'ada', 10).map(({ pointer }) => pointer)).toEqual(['/name', '/list/0/title', '/ada']);
  expect(matches(value, 'ada', 1)).toHaveLength(1);
});

test('a folded value says what it is', () => {
  expect(summary([1, 2])).toBe('[2]');
  expect(summary({})).toBe('{}');
  expect(summary({ a: 1, b: 2, c: 3, d: 4 })).toBe('{ a, b, c, … }');
});
