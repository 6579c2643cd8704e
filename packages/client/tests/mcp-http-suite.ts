import { expect, test } from 'vitest';
import type { ToolgateClient } from '../src/index.js';
import { mcpPlugin } from '../src/plugins/mcp.js';
import { freePort, type HttpServer, startHttp } from './mcp-http-server.js';
import { EVERYTHING, offline, TEST_SERVER } from './mcp-world.js';
import { gate } from './world.js';

const SERVERS = {
  modern: {
    args: [TEST_SERVER, 'http'],
    quick: { name: 'mcp_t_before', args: {} },
    slow: { name: 'mcp_t_wait', args: {} },
  },
  legacy: {
    args: [EVERYTHING, 'streamableHttp'],
    quick: { name: 'mcp_t_echo', args: { message: 'before' } },
    slow: { name: 'mcp_t_trigger-long-running-operation', args: { duration: 3000, steps: 3000 } },
  },
};

/** What holds for a server behind a URL, with either official package. */
export function httpSuite(era: keyof typeof SERVERS): void {
  const { args, quick, slow } = SERVERS[era];

  async function start(): Promise<{
    client: ToolgateClient;
    server: HttpServer;
    again: () => Promise<HttpServer>;
  }> {
    const port = await freePort();
    const server = await startHttp(args, port);
    const client = offline().use(mcpPlugin({ servers: [{ name: 't', url: server.url }] }));
    await client.ready();
    return { client, server, again: () => startHttp(args, port) };
  }

  test('a server that died is an error, and is reached again when it is back', async () => {
    const { client, server, again } = await start();
    expect(await client.execute(quick)).toMatch(/before/);
    await server.stop();
    await expect(client.execute(quick)).rejects.toThrow(/"t" (cannot be reached|gave no answer)/);
    await expect(client.execute(quick)).rejects.toThrow(/"t" cannot be reached/);
    await again();
    expect(await client.execute(quick)).toMatch(/before/);
  });

  test('a server that was started anew in between is just used', async () => {
    const { client, server, again } = await start();
    await server.stop();
    await again();
    expect(await client.execute(quick)).toMatch(/before/);
  });

  test('a call that is under way when the server dies fails, with its outcome unknown', async () => {
    const { client, server } = await start();
    const heard = gate<unknown>();
    const progress = async (value: unknown): Promise<void> => heard.open(value);
    const waiting = client.execute(slow, { progress });
    const failed = expect(waiting).rejects.toThrow(/it is unknown whether the call was carried out/);
    await heard.promise;
    await server.stop();
    await failed;
  });
}
