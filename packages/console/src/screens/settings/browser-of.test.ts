import { expect, test } from 'vitest';
import { browserOf } from './browser-of.ts';

test.each([
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Safari/537.36',
    'Chrome on Linux',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605 Version/18.1 Safari/604',
    'Safari on iOS',
  ],
  ['Mozilla/5.0 (Windows NT 10.0; rv:132.0) Gecko/20100101 Firefox/132.0', 'Firefox on Windows'],
  ['something else', 'something else'],
  [null, 'Unknown browser'],
])('%s is %s', (header, words) => {
  expect(browserOf(header)).toBe(words);
});
