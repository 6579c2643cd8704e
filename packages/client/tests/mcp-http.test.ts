import { describe, expect, test, vi } from 'vitest';
import { type McpToolsChange, mcpPlugin } from '../src/plugins/mcp.js';
import { freePort, startHttp } from './mcp-http-server.js';
import { httpSuite } from './mcp-http-suite.js';
import { offline, PATIENCE, TEST_SERVER } from './mcp-world.js';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

describe('the MCP bridge, with a server of 2026-07-28 behind a URL', () => {
  httpSuite('modern');

  test('the tools change when the server announces it', async () => {
    const { url } = await startHttp([TEST_SERVER, 'http'], await freePort());
    const changes: McpToolsChange[] = [];
    const onToolsChanged = (change: McpToolsChange): void => void changes.push(change);
    const client = offline().use(mcpPlugin({ servers: [{ name: 't', url }], onToolsChanged }));
    await client.ready();
    await client.execute({ name: 'mcp_t_swap', args: {} });
    await vi.waitFor(() => expect(changes.at(-1)?.removed).toEqual(['mcp_t_before']), PATIENCE);
    const names = client.getClientToolDefinitions().map(({ name }) => name);
    expect(names).toContain('mcp_t_after');
    expect(names).not.toContain('mcp_t_before');
  });
});

describe('the MCP bridge, with an older server behind a URL', () => httpSuite('legacy'));
