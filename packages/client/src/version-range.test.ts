import { expect, test } from 'vitest';
import { isVersion, satisfies } from './version-range.js';

test.each([
  ['1.2.3', '*', true],
  ['1.2.3', '', true],
  ['1.2.3', '1.2.3', true],
  ['1.2.4', '1.2.3', false],
  ['1.2.4', '1.2', true],
  ['1.3.0', '1.x', true],
  ['2.0.0', '1.x', false],
  ['1.9.9', '^1.2', true],
  ['1.1.9', '^1.2', false],
  ['2.0.0', '^1.2', false],
  ['0.2.9', '^0.2.3', true],
  ['0.3.0', '^0.2.3', false],
  ['0.0.4', '^0.0.3', false],
  ['0.9.0', '^0', true],
  ['1.2.9', '~1.2.3', true],
  ['1.3.0', '~1.2.3', false],
  ['0.1.0', '>=0.1', true],
  ['0.0.9', '>= 0.1', false],
  ['2.5.0', '>=1 <3', true],
  ['3.0.0', '>=1 <3', false],
  ['1.2.9', '<=1.2', true],
  ['1.3.0', '<=1.2', false],
  ['1.3.0', '>1.2', true],
  ['1.2.9', '>1.2', false],
  ['3.1.0', '^1 || ^3', true],
  ['2.1.0', '^1 || ^3', false],
  ['1.2.3-beta.1', '^1.2', true],
])('%s in "%s" is %s', (version, range, expected) => expect(satisfies(version, range)).toBe(expected));

test.each(['latest', '1.2.3.4', '^', '>=', '1 - x'])('"%s" is no range', (range) => {
  expect(satisfies('1.0.0', range)).toBeUndefined();
});
test.each(['1.0', 'v1', '1.0.0.0', ''])('"%s" is no version', (version) =>
  expect(isVersion(version)).toBe(false),
);
test.each(['1.0.0', '0.1.0-rc.1', '1.0.0+build'])('"%s" is a version', (version) =>
  expect(isVersion(version)).toBe(true),
);
