import { expect, test } from 'vitest';
import { nameInAddress } from './name-in-address.ts';

test.each([
  ['a%2Fb', 'a/b'],
  ['%E0%A4%A', '%E0%A4%A'],
  [undefined, undefined],
])('%s is %s', (part, name) => expect(nameInAddress(part)).toBe(name));
