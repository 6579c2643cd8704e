import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { ToolgateClient } from '../src/index.js';
import { mcpPlugin } from '../src/plugins/mcp.js';

// As it is where only the older SDK is installed.
vi.mock('@modelcontextprotocol/client', () => {
  throw new Error('not installed');
});

vi.setConfig({ testTimeout: 120_000 });

const everything = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);

test('the bridge works on the older SDK as well', async () => {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1' });
  client.use(
    mcpPlugin({ servers: [{ name: 'old', command: process.execPath, args: [everything, 'stdio'] }] }),
  );
  try {
    await client.ready();
    expect(await client.execute({ name: 'mcp_old_echo', args: { message: 'hi' } })).toMatch(/hi/);
    await expect(client.execute({ name: 'mcp_old_get-sum', args: {} })).rejects.toThrow(/invalid/i);
  } finally {
    await client.close();
  }
});
