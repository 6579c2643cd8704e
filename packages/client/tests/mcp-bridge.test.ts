import { describe, expect, test, vi } from 'vitest';
import { bridgeSuite } from './mcp-suite.js';
import { bridged, PATIENCE } from './mcp-world.js';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

describe('the MCP bridge, with a server of 2026-07-28', () => bridgeSuite('modern'));
describe('the MCP bridge, with an older server', () => bridgeSuite('legacy'));

test('a server that ends at the first sight of the newer protocol is spoken to in the older one', async () => {
  const { call, diary } = await bridged('strict');
  expect(await call('before')).toBe('before');
  expect(diary().filter((line) => line.startsWith('started'))).toHaveLength(2);
});

test('a new tool with the name of another is left out, and told', async () => {
  const { client, call, names, changes } = await bridged('modern');
  client.registerTool({
    name: 'mcp_t_after',
    description: 'A tool of the program.',
    parameters: { type: 'object' },
    execute: () => 'mine',
  });
  await call('swap');
  const warning = 'mcp_t_after was left out: another tool has that name';
  await vi.waitFor(() => expect(changes.flatMap(({ warnings }) => warnings)).toContain(warning), PATIENCE);
  expect(names()).not.toContain('mcp_t_before');
  expect(await client.execute({ name: 'mcp_t_after', args: {} })).toBe('mine');
});
