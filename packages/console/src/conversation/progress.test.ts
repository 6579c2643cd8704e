import { expect, test } from 'vitest';
import { read } from './progress.tsx';

test.each([
  [0.5, { share: 0.5, words: '50 %' }],
  [40, { share: 0.4, words: '40 %' }],
  [
    { progress: 3, total: 10 },
    { share: 0.3, words: '3 of 10' },
  ],
  [
    { progress: 30, total: 10, message: 'late' },
    { share: 1, words: 'late' },
  ],
  ['half way', { words: 'half way' }],
  [null, { words: '' }],
])('%j is read as %j', (value, expected) => expect(read(value)).toEqual(expected));
