import { expect, test } from 'vitest';
import { stack } from './stack.ts';

test('each series stands on those before it', () => {
  expect(
    stack([
      [1, 2],
      [10, 0],
      [100, 5],
    ]),
  ).toEqual([
    [1, 2],
    [11, 2],
    [111, 7],
  ]);
});
