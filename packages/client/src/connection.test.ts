import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ToolgateClient } from './client.js';
import {
  AbortedError,
  AccessError,
  ConflictError,
  GoneError,
  NotFoundError,
  ProtocolError,
  RateLimitedError,
  ToolgateError,
  UnavailableError,
  ValidationError,
} from './error.js';

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

type Answer = (request: IncomingMessage, response: ServerResponse, count: number) => void;

/** A client of a server that answers as told. */
async function against(
  answer: Answer,
): Promise<{ client: ToolgateClient; requests: IncomingMessage[]; url: string }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => answer(request, response, requests.push(request) - 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { client: new ToolgateClient({ url, key: 'sk_test' }), requests, url };
}

const json = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};
const problem = (status: number, code: string) => ({
  type: 'about:blank',
  title: '',
  status,
  code,
  detail: `about ${code}`,
});
const event = (seq: number, type = 'notification') =>
  `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify({ type, seq, spaceId: 's', time: '', title: 't' })}\n\n`;

describe('the URL', () => {
  const open = (url: unknown) => new ToolgateClient({ url } as { url: string });
  const expected = 'expected one like "http://127.0.0.1:8787"';

  test.each([
    [undefined, 'url is missing'],
    ['', 'url is missing'],
    [new URL('http://127.0.0.1:8787'), 'url is of type object'],
    ['localhost:8787', 'url "localhost:8787" has no scheme'],
    ['127.0.0.1:8787', 'url "127.0.0.1:8787" has no scheme'],
    ['//gateway.example', 'url "//gateway.example" has no scheme'],
    ['/gateway', 'url "/gateway" has no scheme'],
    ['ws://127.0.0.1:8787', 'url "ws://127.0.0.1:8787" has the scheme "ws"'],
    ['http://', 'url "http://" is malformed'],
  ])('%j is refused at once', (url, words) => {
    expect(() => open(url)).toThrow(new ValidationError('VALIDATION_FAILED', `${words}; ${expected}`));
  });

  test('may be a path in a page', async () => {
    vi.stubGlobal('location', { origin: 'http://page.example' });
    const asked: unknown[] = [];
    const fetch = async (url: unknown): Promise<Response> => {
      asked.push(url);
      return Response.json({});
    };
    await new ToolgateClient({ url: '/gateway/', fetch }).runs.get('run_x');
    expect(asked).toEqual(['/gateway/v1/runs/run_x']);
    vi.unstubAllGlobals();
  });
});

describe('refusals', () => {
  test.each([
    [401, 'UNAUTHENTICATED', AccessError],
    [403, 'FORBIDDEN', AccessError],
    [404, 'NOT_FOUND', NotFoundError],
    [409, 'CONFLICT', ConflictError],
    [410, 'SUPERSEDED', GoneError],
    [412, 'CHANGED', ConflictError],
    [422, 'VALIDATION_FAILED', ValidationError],
    [429, 'RATE_LIMITED', RateLimitedError],
    [500, 'INTERNAL', UnavailableError],
    [418, 'TEAPOT', ToolgateError],
  ])('%i is told by its class and its code %s', async (status, code, kind) => {
    const { client } = await against((_, response) =>
      json(response, status, problem(status, code), { 'retry-after': '0' }),
    );
    const error = await client.approvals
      .decide('appr_x', { approved: true })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code, status, message: `about ${code}` });
  });

  test('one without a problem document still has a status', async () => {
    const { client } = await against((_, response) => response.writeHead(404).end('<html>'));
    await expect(client.runs.get('run_x')).rejects.toMatchObject({ code: 'HTTP', status: 404 });
  });

  test('an answer that is not JSON is a protocol error', async () => {
    const { client } = await against((_, response) => response.writeHead(200).end('<html>'));
    await expect(client.runs.get('run_x')).rejects.toThrow(ProtocolError);
  });
});

describe('sending again', () => {
  test('a busy gateway is asked again, with the same key', async () => {
    const { client, requests } = await against((_, response, count) =>
      count < 2
        ? json(response, 503, problem(503, 'UNAVAILABLE'), { 'retry-after': '0' })
        : json(response, 201, { runId: 'run_1' }),
    );
    expect(await client.runs.start('hi')).toEqual({ runId: 'run_1' });
    const keys = requests.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });

  test('but not for ever', async () => {
    const { client, requests } = await against((_, response) =>
      json(response, 429, problem(429, 'RATE_LIMITED'), { 'retry-after': '0' }),
    );
    await expect(client.runs.get('run_x')).rejects.toThrow(RateLimitedError);
    expect(requests).toHaveLength(4);
  });

  test('a budget that is used up is not waited for', async () => {
    const { client, requests } = await against((_, response) =>
      json(response, 429, problem(429, 'BUDGET_EXCEEDED'), { 'retry-after': '57600' }),
    );
    await expect(client.runs.start('hi')).rejects.toMatchObject({
      code: 'BUDGET_EXCEEDED',
      retryAfterMs: 57_600_000,
    });
    expect(requests).toHaveLength(1);
  });

  test('what is not safe to send twice is sent once', async () => {
    const { client, requests } = await against((_, response) => response.destroy());
    await expect(client.spaces.create()).rejects.toMatchObject({ code: 'UNREACHABLE' });
    expect(requests).toHaveLength(1);
  });

  test('an abort ends the waiting', async () => {
    const { client } = await against((_, response) =>
      json(response, 503, problem(503, 'UNAVAILABLE'), { 'retry-after': '3600' }),
    );
    const stop = new AbortController();
    const asked = client.runs.get('run_x', { signal: stop.signal });
    queueMicrotask(() => stop.abort());
    await expect(asked).rejects.toThrow(AbortedError);
  });
});

describe('credentials', () => {
  test('a backend sends its key', async () => {
    const { client, requests } = await against((_, response) => json(response, 200, {}));
    await client.runs.get('run_x');
    expect(requests[0]?.headers.authorization).toBe('Bearer sk_test');
  });
});

describe('a subscription', () => {
  const stream = (response: ServerResponse, text: string, end = true): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(text);
    if (end) response.end();
  };

  test('comes back with its cursor, and drops what it has seen', async () => {
    const { client, requests } = await against((_, response, count) =>
      stream(response, count === 0 ? event(1) + event(2) : event(2) + event(3), count === 0),
    );
    const seen: number[] = [];
    for await (const { seq } of client.spaces.subscribe('space_x')) {
      seen.push(seq);
      if (seq === 3) break;
    }
    expect(seen).toEqual([1, 2, 3]);
    expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '2']);
  });

  test('begins where it is told', async () => {
    const { client, requests } = await against((_, response) => stream(response, event(8), false));
    const events = client.spaces.subscribe('space_x', { after: 7 });
    for await (const _ of events) break;
    expect(requests[0]?.headers['last-event-id']).toBe('7');
    expect(events.cursor).toBe(8);
  });

  test('ends when the gateway says that all was read', async () => {
    const { client } = await against((_, response) => response.writeHead(204).end());
    const events = [];
    for await (const one of client.runs.subscribe('run_x', { after: 9 })) events.push(one);
    expect(events).toEqual([]);
  });

  test('of a run ends with the run', async () => {
    const { client, requests } = await against((_, response) =>
      stream(response, event(1, 'run-finish'), false),
    );
    for await (const _ of client.runs.subscribe('run_x'));
    expect(requests).toHaveLength(1);
  });

  test('a cursor past retention ends it with an error that says so', async () => {
    const { client } = await against((_, response) => json(response, 410, problem(410, 'GONE')));
    const iterate = async (): Promise<void> => {
      for await (const _ of client.spaces.subscribe('space_x', { after: 1 }));
    };
    await expect(iterate()).rejects.toThrow(GoneError);
    const told = new Promise((resolve) => client.spaces.subscribe('space_x').on('error', resolve));
    expect(await told).toBeInstanceOf(GoneError);
  });

  test('hands events to handlers by type, as themselves and as data, until it is closed', async () => {
    const { client } = await against((_, response) =>
      stream(response, event(1) + event(2, 'mystery') + event(3), false),
    );
    const events = client.spaces.subscribe('space_x');
    const byType: number[] = [];
    const off = events.on('notification', (one) => {
      byType.push(one.data.seq);
      off();
    });
    const all: string[] = [];
    const closed = new Promise((resolve) => events.on('close', () => resolve(undefined)));
    events.on('*', (one) => {
      all.push(`${one.type} ${one.seq}`);
      if (one.seq === 3) events.close();
    });
    await closed;
    expect(byType).toEqual([1]);
    expect(all).toEqual(['notification 1', 'mystery 2', 'notification 3']);
    expect(events.closed).toBe(true);
  });

  test('a handler that fails does not stop the others; its error is told', async () => {
    const { client } = await against((_, response) => stream(response, event(1) + event(2), false));
    const events = client.spaces.subscribe('space_x');
    const errors: unknown[] = [];
    events.on('error', (error) => errors.push((error as Error).message));
    events.on('notification', async () => {
      throw new Error('async');
    });
    events.on('notification', () => {
      throw new Error('sync');
    });
    await new Promise<void>((resolve) => events.on('*', ({ seq }) => seq === 2 && resolve()));
    events.close();
    expect(errors.toSorted()).toEqual(['async', 'async', 'sync', 'sync']);
  });

  test('an abort closes it quietly', async () => {
    const { client } = await against((_, response) => stream(response, event(1), false));
    const stop = new AbortController();
    for await (const _ of client.spaces.subscribe('space_x', { signal: stop.signal })) stop.abort();
    expect(stop.signal.aborted).toBe(true);
  });
});

describe('a release', () => {
  /** A client whose second token never comes, unless `fresh` is given. */
  function withTokens(url: string, fresh?: string): ToolgateClient {
    let asked = 0;
    const token = (): Promise<string> => {
      asked += 1;
      if (asked === 1) return Promise.resolve('first');
      return fresh === undefined ? new Promise(() => {}) : Promise.resolve(fresh);
    };
    return new ToolgateClient({ url, publicKey: 'pk_test', token });
  }

  test('is sent at once with the last token: a page that is being closed cannot fetch one', async () => {
    const { url, requests } = await against((_, response) => json(response, 200, {}));
    const client = withTokens(url);
    await client.tools.claim('call_x');
    await client.tools.release('call_x');
    expect(requests.map((request) => request.headers.authorization)).toEqual([
      'Bearer first',
      'Bearer first',
    ]);
  });

  test('is sent again with a fresh token when the last one has expired', async () => {
    const { url, requests } = await against((_, response, count) =>
      count === 1 ? json(response, 401, problem(401, 'UNAUTHENTICATED')) : json(response, 200, {}),
    );
    const client = withTokens(url, 'second');
    await client.tools.claim('call_x');
    await client.tools.release('call_x');
    expect(requests.at(-1)?.headers.authorization).toBe('Bearer second');
    expect(requests).toHaveLength(3);
  });
});
