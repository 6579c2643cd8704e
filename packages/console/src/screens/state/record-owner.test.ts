import { expect, test } from 'vitest';
import { changesOf, ownerOf, titleOf } from './record-owner.ts';

test('only members that differ are sent, and those that are gone as null', () => {
  expect(changesOf({ a: 1, b: [1], c: 'x' }, { a: 1, b: [2], d: true })).toEqual({
    b: [2],
    c: null,
    d: true,
  });
  expect(changesOf({ a: 1 }, { a: 1 })).toEqual({});
});

test('nobody is asked for before somebody is named', () => {
  expect(ownerOf('user', '')).toBeUndefined();
  expect(ownerOf('space', 'space_1')).toEqual({ space: 'space_1' });
});

test('a record is told by its text, or its id', () => {
  const base = { id: 'goal_1', version: 1, createdAt: '', updatedAt: '' };
  expect(titleOf({ ...base, content: 'Learn pottery' })).toBe('Learn pottery');
  expect(titleOf(base)).toBe('goal_1');
});
