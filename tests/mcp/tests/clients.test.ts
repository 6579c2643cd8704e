import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { type Gateway, gatewayBinary } from '@toolgate/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld } from './world.ts';

/** What both SDKs' clients are asked here. */
interface AnyClient {
  listTools(): Promise<{ tools: Array<{ name: string }> }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<Record<string, unknown>>;
  listPrompts(): Promise<{ prompts: Array<{ name: string }> }>;
  listResourceTemplates(): Promise<{ resourceTemplates: Array<{ uriTemplate: string }> }>;
  close(): Promise<void>;
}

const INFO = { name: 'test', version: '1.0.0' };
const YES = { action: 'accept' as const, content: { approve: true } };
type Mode = 'legacy' | 'auto' | { pin: string };

function client(mode: Mode): Client {
  const client = new Client(INFO, {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode },
  });
  client.setRequestHandler('elicitation/create', () => YES);
  return client;
}

function classic(): ClassicClient {
  const client = new ClassicClient(INFO, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => YES);
  return client;
}

describe('the official TypeScript clients', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startWorld();
  });
  afterAll(() => gateway?.stop());

  const address = () => new URL(`${gateway.url}/mcp`);
  const requestInit = () => ({ headers: { authorization: `Bearer ${gateway.secretKey}` } });
  const stdio = () =>
    new StdioClientTransport({
      command: gatewayBinary(),
      args: ['mcp', '--url', gateway.url],
      env: { TOOLGATE_SECRET_KEY: gateway.secretKey, NO_PROXY: '*' },
    });

  async function over(mode: Mode, transport: 'http' | 'stdio'): Promise<AnyClient> {
    const connected = client(mode);
    const http = () => new StreamableHTTPClientTransport(address(), { requestInit: requestInit() });
    await connected.connect(transport === 'http' ? http() : stdio());
    return connected as unknown as AnyClient;
  }

  async function overClassic(): Promise<AnyClient> {
    const connected = classic();
    await connected.connect(new ClassicTransport(address(), { requestInit: requestInit() }) as never);
    return connected as unknown as AnyClient;
  }

  const ways: Array<[string, () => Promise<AnyClient>]> = [
    ['2.x, 2026-07-28', () => over({ pin: '2026-07-28' }, 'http')],
    ['2.x, whichever the server speaks', () => over('auto', 'http')],
    ['2.x, sessions', () => over('legacy', 'http')],
    ['1.x, sessions', overClassic],
    ['2.x, 2026-07-28, by `toolgate mcp`', () => over({ pin: '2026-07-28' }, 'stdio')],
    ['2.x, initialize, by `toolgate mcp`', () => over('legacy', 'stdio')],
  ];

  test.each(ways)('%s: lists, calls and approves', async (_, connect) => {
    const mcp = await connect();
    const names = (await mcp.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['echo', 'risky', 'show_page', 'ask_default', 'web_fetch']));
    const echoed = await mcp.callTool({ name: 'echo', arguments: { n: 1 } });
    expect(echoed.structuredContent).toEqual({ n: 1 });
    const approved = await mcp.callTool({ name: 'risky', arguments: { n: 2 } });
    expect(approved.content).toEqual([{ type: 'text', text: '{"n":2}' }]);
    const asked = await mcp.callTool({ name: 'ask_default', arguments: { message: 'hello' } });
    expect(asked.structuredContent).toMatchObject({ answer: expect.any(String) });
    expect((await mcp.listPrompts()).prompts.map(({ name }) => name)).toEqual(['default', 'welcome']);
    const templates = (await mcp.listResourceTemplates()).resourceTemplates;
    expect(templates[0]?.uriTemplate).toBe('toolgate://spaces/{space}/files/{+path}');
    await mcp.close();
  });
});
