import { expect, test, vi } from 'vitest';
import { type ServeConnection, ToolgateClient } from './index.js';

/** A gateway that does not answer the first `away` requests, and has nothing to do afterwards. */
function comesLater(away: number): typeof fetch {
  let count = 0;
  return async (input, init) => {
    count += 1;
    if (count <= away) throw new TypeError('fetch failed');
    if (!String(input).endsWith('/events')) return Response.json({ runs: [], nextCursor: null });
    const body = new ReadableStream({
      start: (stream) => init?.signal?.addEventListener('abort', () => stream.close()),
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
}

/** Serves until the gateway answers; gives what was said of the connection. */
async function served(away: number, onConnection?: (now: ServeConnection) => void): Promise<void> {
  const client = new ToolgateClient({ url: 'http://gateway.example', key: 'sk_x', fetch: comesLater(away) });
  const server = client.tools.serve('space', onConnection ? { onConnection } : {});
  await server.ready();
  await server.close();
  await server.done;
}

test('a server that starts before the gateway waits for it, and says so once', async () => {
  const told: ServeConnection[] = [];
  await served(9, (now) => told.push(now));
  expect(told).toEqual([
    { status: 'lost', reason: 'the gateway at http://gateway.example cannot be reached' },
    { status: 'up' },
  ]);
}, 30_000);

test('without a handler the console says that it waits', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  await served(5);
  expect(warn.mock.calls).toEqual([
    ['[toolgate] waiting for the gateway: the gateway at http://gateway.example cannot be reached'],
    ['[toolgate] the gateway answers again'],
  ]);
  warn.mockRestore();
}, 30_000);

test('one that waits can be closed', async () => {
  const client = new ToolgateClient({ url: 'http://gateway.example', key: 'sk_x', fetch: comesLater(1e9) });
  const waits = new Promise<void>((resolve) => {
    const server = client.tools.serve('space', {
      onConnection: () => void server.close().then(resolve),
    });
  });
  await waits;
}, 30_000);

test('an error that waiting does not mend ends it', async () => {
  const refused = async () =>
    Response.json({ code: 'NOT_FOUND', detail: 'no such space', status: 404 }, { status: 404 });
  const client = new ToolgateClient({ url: 'http://gateway.example', key: 'sk_x', fetch: refused });
  await expect(client.tools.serve('space').ready()).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('a timeout that is none is refused when the server starts', async () => {
  const client = new ToolgateClient({ url: 'http://gateway.example', key: 'sk_x', fetch: comesLater(0) });
  const serve = (timeout: number | string) =>
    client.tools.serve('space', { tools: { lamp: { timeout, execute: () => 'on' } } });
  expect(() => serve(-5)).toThrow('the `timeout` of tool "lamp" is a number of milliseconds');
  expect(() => serve('soon')).toThrow('got "soon"');
  await serve('30s').close();
});
