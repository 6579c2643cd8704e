import { expect, test } from 'vitest';
import { codeIn } from './session.tsx';

test.each([
  ['http://127.0.0.1:8787/login#code=abc-_1', 'abc-_1'],
  ['#code=abc', 'abc'],
  ['  code=abc \n', 'abc'],
  ['#code=%E0%A4%A', '%E0%A4%A'],
  ['abc', undefined],
  ['', undefined],
])('the code in %j is %s', (text, code) => expect(codeIn(text)).toBe(code));
