import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Gateway } from '@toolgate/test-support';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rest, startWorld } from './world.ts';

const CHROMIUM = {
  executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
  ],
};
const DIST = dirname(fileURLToPath(import.meta.resolve('@toolgate/client')));

let pages: Server;
let browser: Browser;
let gateway: Gateway;
let origin: string;

/** Executes `show_page` for the space that its address names. */
const PAGE = `<!doctype html><title>tab</title><body><script type="module">
  import { ToolgateClient } from '/index.js';
  const { options, space } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
  const show_page = (input) => ({ shown: input, title: document.title });
  await new ToolgateClient(options).tools.serve(space, { tools: { show_page } }).ready();
  document.body.append('ready');
</script>`;

/** A site with that page and the client that the package ships. */
async function serve(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    if (path === '/') {
      response.setHeader('content-type', 'text/html').end(PAGE);
      return;
    }
    try {
      response.setHeader('content-type', 'text/javascript').end(await readFile(join(DIST, path)));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

beforeAll(async () => {
  pages = await serve();
  origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  gateway = await startWorld({ TOOLGATE_HTTP_ORIGINS: origin });
  browser = await chromium.launch(CHROMIUM);
});

afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
  pages?.close();
});

/** A tab of the user `ann` that executes `show_page` for a space. */
async function openTab(space: string): Promise<Page> {
  const page = await browser.newPage();
  const options = { url: gateway.url, publicKey: gateway.publicKey, token: gateway.token('ann') };
  await page.goto(`${origin}/#${encodeURIComponent(JSON.stringify({ options, space }))}`);
  await page.getByText('ready').waitFor();
  return page;
}

async function connect(): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } }, inputRequired: { autoFulfill: false } },
  );
  const headers = { authorization: `Bearer ${gateway.secretKey}` };
  const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
    requestInit: { headers },
  });
  await client.connect(transport);
  return client;
}

test('a tool that a browser tab executes is called by an MCP client, across a restart', async () => {
  const { id } = await rest(gateway, 'POST', '/v1/spaces', { members: ['ann'] });
  const space = String(id);
  const _meta = { 'toolgate/space': space };
  const params = { name: 'show_page', arguments: { n: 7 }, _meta };

  // Nobody serves the space yet: the client is told to come back, and keeps the call's state.
  const first = await connect();
  const waiting = await first.callTool(params, { allowInputRequired: true } as never);
  expect(waiting).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) });
  const { requestState } = waiting as unknown as { requestState: string };
  await first.close();

  await gateway.restart();
  await openTab(space);
  const second = await connect();
  const done = await second.callTool(
    { ...params, requestState } as never,
    { allowInputRequired: true } as never,
  );
  expect(done.structuredContent).toEqual({ shown: { n: 7 }, title: 'tab' });
  // Asked again, it is the same call: the tab does not execute it twice.
  const again = await second.callTool(
    { ...params, requestState } as never,
    { allowInputRequired: true } as never,
  );
  expect(again._meta).toEqual(done._meta);

  // And at once, now that the tab is there.
  const direct = await second.callTool({ ...params, arguments: { n: 8 } }, {
    allowInputRequired: true,
  } as never);
  expect(direct.structuredContent).toEqual({ shown: { n: 8 }, title: 'tab' });
  await second.close();
});
