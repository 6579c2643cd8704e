import { expect, test } from 'vitest';
import { catalogOf, changeOf } from './mcp-catalog.js';

const tool = (name: string, inputSchema: unknown = { type: 'object' }, description = 'A tool.') => ({
  name,
  description,
  inputSchema,
});

test('what was left out or simplified is told', () => {
  const pattern = { type: 'object', properties: { a: { type: 'string', pattern: '^x' } } };
  const draft = { type: 'object', $schema: 'http://json-schema.org/draft-07/schema#' };
  const { tools, warnings } = catalogOf(
    's',
    [tool('a'), tool('a'), tool('b', pattern), tool('c', draft), tool('not')],
    ['a', 'b', 'c'],
  );
  expect(tools.map(({ original }) => original)).toEqual(['a', 'b', 'c']);
  expect(warnings).toEqual(['a was left out: there are two of that name', 'the schema of b was simplified']);
});

test('two lists are compared by what the model sees', () => {
  const before = catalogOf('s', [tool('a'), tool('b'), tool('c')], undefined).tools;
  const after = catalogOf('s', [tool('c'), tool('b', undefined, 'Another.'), tool('d')], undefined).tools;
  expect(changeOf(before, after)).toEqual({ added: ['mcp_s_d'], removed: ['mcp_s_a'], changed: ['mcp_s_b'] });
  expect(changeOf(after, after)).toEqual({ added: [], removed: [], changed: [] });
});
