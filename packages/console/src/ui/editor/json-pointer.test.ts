import { expect, test } from 'vitest';
import { locateInJson, placeOfMistake } from './json-pointer.ts';

const TEXT = `{
  "instructions": "say \\"hi\\"",
  "tools": [
    { "name": "one" },
    { "name": "two", "a/b": [1, -2.5e3, true] }
  ]
}`;

function at(pointer: string): string | undefined {
  const range = locateInJson(TEXT, pointer);
  return range && TEXT.slice(range.from, range.to);
}

test('a member is found with its name', () => {
  expect(at('/instructions')).toBe('"instructions": "say \\"hi\\""');
  expect(at('/tools/1/name')).toBe('"name": "two"');
});

test('an item and a name with a slash are found', () => {
  expect(at('/tools/0')).toBe('{ "name": "one" }');
  expect(at('/tools/1/a~1b/1')).toBe('-2.5e3');
});

test('a missing member leads to what would contain it', () => {
  expect(at('/tools/0/description')).toBe('{');
  expect(at('/model')).toBe('{');
});

test('the empty pointer is the whole text', () => {
  expect(at('')).toBe(TEXT);
});

test('a text that is not JSON has no places', () => {
  expect(locateInJson('{"a": ', '/a')).toBeUndefined();
  expect(locateInJson('{"a": "', '/a')).toBeUndefined();
});

test.each([
  ['{"a": ]', 6],
  ['{"a": 1,}', 8],
  ['[1 2]', 3],
  ['{"a" 1}', 5],
  ['{"a": nul}', 6],
  ['{"a": 1', 7],
])('%s stops being JSON at %i', (text, at) => {
  expect(placeOfMistake(text)).toBe(at);
});
