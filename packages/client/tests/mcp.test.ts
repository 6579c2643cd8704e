import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { type McpQuestion, mcpPlugin } from '../src/plugins/mcp.js';
import { EVERYTHING, offline, PATIENCE, TEST_SERVER } from './mcp-world.js';
import { world } from './world.js';

const stdio = {
  name: 'everything',
  command: process.execPath,
  args: [EVERYTHING, 'stdio'],
  tools: ['echo', 'get-sum'],
};

const own = { name: 't', command: process.execPath, args: [TEST_SERVER] };

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

  test('its progress reaches those who watch the run', async () => {
    const { client } = await world([{ calls: [{ name: 'mcp_t_wait', args: {} }] }]);
    client.use(mcpPlugin({ servers: [{ ...own, tools: ['wait'] }] }));
    for await (const { type, value } of client.chatStream({ message: 'wait' })) {
      if (type !== 'tool_progress') continue;
      expect(value).toMatchObject({ toolName: 'mcp_t_wait', progress: { progress: 1, message: 'waiting' } });
      return;
    }
    expect.unreachable('the stream ended without progress');
  });

  test('a chat has the tools of its start, the next one those that came since', async () => {
    const { client, model } = await world([
      { calls: [{ name: 'mcp_t_swap', args: {} }] },
      { calls: [{ name: 'mcp_t_before', args: {} }] },
      'It is gone.',
      'Hello.',
    ]);
    client.use(mcpPlugin({ servers: [{ ...own, tools: ['swap', 'before', 'after'] }] }));
    const { text, toolResults } = await client.chat('swap');
    expect(text).toBe('It is gone.');
    expect(JSON.stringify(toolResults[1]?.result)).toMatch(/disabled|not found/);
    const names = (): string[] => client.getClientToolDefinitions().map(({ name }) => name);
    await vi.waitFor(() => expect(names()).toEqual(['mcp_t_after', 'mcp_t_swap']), PATIENCE);
    await client.chat('hello');
    const offered = model.requests.at(-1)?.tools?.map((tool) => tool.function.name) ?? [];
    expect(offered).toContain('mcp_t_after');
    expect(offered).not.toContain('mcp_t_before');
  });
});

describe('elicitation, with the reference server', () => {
  const ask = 'mcp_everything_trigger-elicitation-request';
  const open = 'mcp_everything_trigger-url-elicitation';

  test('the tools that ask are there only if somebody can be asked', async () => {
    const deaf = offline().use(mcpPlugin({ servers: [{ ...stdio, tools: undefined }] }));
    await deaf.ready();
    const asking = offline().use(
      mcpPlugin({ servers: [{ ...stdio, tools: undefined }], onElicitation: () => ({ action: 'cancel' }) }),
    );
    await asking.ready();
    await vi.waitFor(() => expect(asking.hasExecutor(ask)).toBe(true), PATIENCE);
    expect(asking.hasExecutor(open)).toBe(true);
    expect(deaf.hasExecutor(ask)).toBe(false);
    const sampling = asking.getClientToolDefinitions().filter(({ name }) => name.includes('sampling'));
    expect(sampling).toEqual([]);
  });

  test('a form, an address', async () => {
    const asked: McpQuestion[] = [];
    const client = offline().use(
      mcpPlugin({
        servers: [{ ...stdio, tools: undefined }],
        onElicitation: (question) => {
          asked.push(question);
          return question.url
            ? { action: 'decline' }
            : { action: 'accept', content: { name: 'Ada', email: 'ada@example.com', integer: 7 } };
        },
      }),
    );
    await client.ready();
    await vi.waitFor(() => expect(client.hasExecutor(ask)).toBe(true), PATIENCE);
    expect(await client.execute({ name: ask, args: {} })).toMatch(/Name: Ada/);
    const url = 'https://example.com/pay';
    expect(await client.execute({ name: open, args: { url } })).toMatch(/declined/);
    expect(asked).toMatchObject([{ schema: { required: ['name'] } }, { url }]);
    expect(asked[1]).not.toHaveProperty('schema');
  });
});

const TIME = process.env.TOOLGATE_TEST_MCP_SERVER_TIME;
test('a server of 2026-07-28 in another language', async () => {
  if (!TIME) throw new Error('TOOLGATE_TEST_MCP_SERVER_TIME names no program; `make js` sets it');
  const server = { name: 'time', command: TIME, args: ['--local-timezone', 'UTC'] };
  const client = offline().use(mcpPlugin({ servers: [server] }));
  await client.ready();
  const args = { timezone: 'Asia/Tokyo' };
  const now = await client.execute({ name: 'mcp_time_get_current_time', args });
  expect(JSON.stringify(now)).toMatch(/\+09:00/);
  await expect(
    client.execute({ name: 'mcp_time_get_current_time', args: { timezone: 'Nowhere' } }),
  ).rejects.toThrow(/timezone/i);
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
