import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { ToolgateClient } from '../src/index.js';
import { mcpPlugin } from '../src/plugins/mcp.js';
import { afterwards, world } from './world.js';

const EVERYTHING = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);
const stdio = {
  name: 'everything',
  command: process.execPath,
  args: [EVERYTHING, 'stdio'],
  tools: ['echo', 'get-sum'],
};

function offline(): ToolgateClient {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1' });
  afterwards(() => client.close());
  return client;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The same server over HTTP. */
async function startHttp(port: number): Promise<{ url: string; stop: () => Promise<void> }> {
  const env = { ...process.env, PORT: String(port) };
  const child = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  afterwards(stop);
  await new Promise<void>((resolve) => {
    const heard = (piece: Buffer): void => {
      if (/listening/i.test(String(piece))) resolve();
    };
    child.stdout.on('data', heard);
    child.stderr.on('data', heard);
  });
  return { url: `http://127.0.0.1:${port}/mcp`, stop };
}

/** Starting a Node process takes a while where others compile. */
const PATIENCE = { timeout: 60_000 };
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

describe('the MCP bridge', () => {
  test('a model calls a tool of a server that was started here', async () => {
    const { client, model } = await world([
      { calls: [{ name: 'mcp_everything_get-sum', args: { a: 2, b: 3 } }] },
      'Five.',
    ]);
    client.use(mcpPlugin({ servers: [stdio] }));
    const { text, toolResults } = await client.chat('add');
    expect(text).toBe('Five.');
    expect(JSON.stringify(toolResults[0]?.result)).toMatch(/5/);
    const offered = model.requests[0]?.tools?.map((tool) => tool.function.name);
    expect(offered).toEqual(expect.arrayContaining(['mcp_everything_echo', 'mcp_everything_get-sum']));
  });

  test('all tools of a real server have definitions that can be sent', async () => {
    const client = offline().use(mcpPlugin({ servers: [{ ...stdio, tools: undefined }] }));
    await client.ready();
    expect(client.getClientToolDefinitions().length).toBeGreaterThan(8);
  });

  test('what a server calls an error is one', async () => {
    const client = offline().use(mcpPlugin({ servers: [stdio] }));
    await client.ready();
    await expect(client.execute({ name: 'mcp_everything_get-sum', args: { a: 'x' } })).rejects.toThrow(
      /invalid/i,
    );
  });

  test('over HTTP; a server that died is an error, and is reached again when it is back', async () => {
    const port = await freePort();
    const first = await startHttp(port);
    const client = offline().use(mcpPlugin({ servers: [{ name: 'web', url: first.url, tools: ['echo'] }] }));
    await client.ready();
    const echo = () => client.execute({ name: 'mcp_web_echo', args: { message: 'hi' } });
    expect(await echo()).toMatch(/hi/);
    await first.stop();
    await expect(echo()).rejects.toThrow();
    await expect(echo()).rejects.toThrow(/"web" cannot be reached/);
    await startHttp(port);
    expect(await echo()).toMatch(/hi/);
  });

  test('a process that died is started again by the next call', async () => {
    const pids: number[] = [];
    const client = offline();
    const plugin = mcpPlugin({ servers: [stdio] });
    client.use(plugin);
    await client.ready();
    const children = (): number[] => childrenOf(process.pid);
    pids.push(...children());
    expect(pids.length).toBeGreaterThan(0);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await vi.waitFor(async () => {
      expect(await client.execute({ name: 'mcp_everything_echo', args: { message: 'again' } })).toMatch(
        /again/,
      );
    }, PATIENCE);
    await client.unuse('mcp-bridge');
  });

  test('a server that cannot be started keeps the plugin from starting, unless it is optional', async () => {
    const broken = { name: 'broken', command: '/nowhere/server' };
    const client = offline().use(mcpPlugin({ servers: [stdio, broken] }));
    await expect(client.ready()).rejects.toMatchObject({
      code: 'PLUGIN_FAILED',
      message: /"broken" cannot be reached/,
    });
    client.use(mcpPlugin({ servers: [stdio, { ...broken, optional: true }] }));
    await client.ready();
    expect(client.getClientToolDefinitions().map(({ name }) => name)).toContain('mcp_everything_echo');
  });

  test('removing the plugin ends its servers', async () => {
    const client = offline().use(mcpPlugin({ servers: [stdio] }));
    await client.ready();
    const before = childrenOf(process.pid);
    expect(before.length).toBeGreaterThan(0);
    await client.unuse('mcp-bridge');
    await vi.waitFor(() => expect(childrenOf(process.pid)).toEqual([]), PATIENCE);
    expect(client.getClientToolDefinitions()).toEqual([]);
  });
});

/** The processes that a process has started, by what Linux says. */
function childrenOf(pid: number): number[] {
  const threads = readdirSync(`/proc/${pid}/task`);
  const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'));
  const commands = (child: string): string => readFileSync(`/proc/${child}/cmdline`, 'utf8');
  return lists
    .flatMap((list) => list.split(' ').filter(Boolean))
    .filter((child) => commands(child).includes('server-everything'))
    .map(Number);
}
