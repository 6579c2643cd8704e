import { expect, test } from 'vitest';
import { NAME_PATTERN } from '../definition-rules.js';
import { joinedName } from './mcp-name.js';

test('server and tool are joined', () =>
  expect(joinedName('sqlite', 'read_query')).toBe('mcp_sqlite_read_query'));
test.each([
  ['s'.repeat(80), 'tool'],
  ['server', 't'.repeat(80)],
  ['my server', 'read.file'],
  ['ü', '工具'],
  ['s'.repeat(60), 't'.repeat(60)],
])('%s and %s make a name that every model accepts', (server, tool) => {
  expect(joinedName(server, tool)).toMatch(NAME_PATTERN);
});
test('what is cut is cut in the server’s part', () => {
  expect(joinedName('s'.repeat(80), 'read_query')).toMatch(/^mcp_s+_read_query_[0-9a-z]{7}$/);
});
test('names that would become the same stay apart', () => {
  const names = ['a.b', 'a b', 'a/b', 'a_b'].map((tool) => joinedName('x', tool));
  expect(new Set(names).size).toBe(4);
  expect(joinedName('x'.repeat(80), 'a')).not.toBe(joinedName(`${'x'.repeat(80)}y`, 'a'));
});
