import { afterEach, expect, test, vi } from 'vitest';
import { Connection } from './connection.js';
import { RtcOutbox } from './rtc-outbox.js';
import type { ChannelNotice, ToolEventType } from './tool-message.js';

afterEach(() => {
  vi.useRealTimers();
});

/** An outbox, what it posted over HTTP, and what it sent over its last connection. */
function outbox() {
  const posted: unknown[] = [];
  const fetch = async (url: unknown, request?: RequestInit): Promise<Response> => {
    posted.push([new URL(String(url)).pathname, JSON.parse(String(request?.body))]);
    return Response.json({ stored: true });
  };
  const made = new RtcOutbox(new Connection({ url: 'http://127.0.0.1:1', fetch }, () => {}), 'space_1');
  const sent: Array<{ id: string; toolId: string }> = [];
  const connect = (bytesMax: number, messagesPerSecond = 1000): void => {
    sent.length = 0;
    made.connect({ bytesMax, messagesPerSecond, send: (text) => sent.push(JSON.parse(text)) });
  };
  const ask = (type: ToolEventType, payload: Record<string, unknown>, signal?: AbortSignal) =>
    made.ask({ type, toolId: 'demo', payload, signal });
  const answer = (type: ChannelNotice['type'], payload: Record<string, unknown>, id?: string) =>
    made.answer({ type, payload, timestamp: 1, ...(id === undefined ? {} : { id }) });
  return { made, posted, sent, connect, ask, answer };
}

const RESULT = { toolCallId: 'call_1', result: 'x'.repeat(500) };
const TOO_LARGE = { status: 413, code: 'MESSAGE_TOO_LARGE', detail: 'too large' };

test('a result that was made without a connection and is too large for the next goes over HTTP', async () => {
  const { connect, ask, sent, posted } = outbox();
  const stored = ask('TOOL_COMPLETED', RESULT);
  const small = ask('TOOL_COMPLETED', { toolCallId: 'call_2', result: 1 });
  small.catch(() => {});
  connect(300);
  expect(await stored).toEqual({ stored: true });
  expect(posted).toEqual([['/v1/spaces/space_1/tool-results', RESULT]]);
  expect(sent.map(({ id }) => id)).toEqual(['m-2']);
  // Settled: the next connection does not get it again.
  connect(1_000_000);
  expect(sent.map(({ id }) => id)).toEqual(['m-2']);
});

test('a decision that is too large for the channel is rejected, also one that waited', async () => {
  const { connect, ask, sent } = outbox();
  const waited = ask('TOOL_ACCEPTED', { approvalId: 'appr_1', input: 'x'.repeat(500) });
  connect(300);
  await expect(waited).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
  expect(sent).toEqual([]);
});

test('bytes count, not characters', async () => {
  const { connect, ask } = outbox();
  connect(600);
  const waited = ask('TOOL_ACCEPTED', { approvalId: 'appr_1', input: 'è'.repeat(300) });
  await expect(waited).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
});

test('a refusal for its size without an id is about the largest message', async () => {
  const { connect, ask, answer, posted } = outbox();
  connect(1_000_000);
  const large = ask('TOOL_ACCEPTED', { approvalId: 'appr_1', input: 'x'.repeat(600) });
  const result = ask('TOOL_COMPLETED', RESULT);
  const small = ask('TOOL_REJECTED', { approvalId: 'appr_2' });
  expect(answer('CHANNEL_PROBLEM', TOO_LARGE)).toBe(true);
  await expect(large).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE', status: 413 });
  expect(answer('CHANNEL_PROBLEM', TOO_LARGE)).toBe(true);
  expect(await result).toEqual({ stored: true });
  expect(posted).toHaveLength(1);
  expect(answer('CHANNEL_RECEIPT', { approved: false }, 'm-3')).toBe(true);
  expect(await small).toEqual({ approved: false });
  expect(answer('CHANNEL_PROBLEM', TOO_LARGE)).toBe(false);
});

test('other notices without an id answer nothing', async () => {
  const { made, connect, ask, answer } = outbox();
  connect(1_000_000);
  const waits = ask('TOOL_REJECTED', { approvalId: 'appr_1' });
  expect(answer('CHANNEL_PROBLEM', { status: 429, code: 'RATE_LIMITED', detail: 'slow down' })).toBe(false);
  expect(answer('CHANNEL_CURSOR', {}, 'm-1')).toBe(false);
  made.fail(new Error('closed'));
  await expect(waits).rejects.toThrow('closed');
});

test('a message whose caller has gone is not sent on the next connection', async () => {
  const { connect, ask, sent } = outbox();
  const stop = new AbortController();
  const waits = ask('TOOL_REJECTED', { approvalId: 'appr_1' }, stop.signal);
  stop.abort();
  await expect(waits).rejects.toMatchObject({ code: 'ABORTED' });
  connect(1_000_000);
  expect(sent).toEqual([]);
});

const REFUSED = { status: 429, code: 'RATE_LIMITED', detail: 'more than 20 messages per second; wait 50 ms' };
const ids = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `m-${from + index}`);

test('a few messages are on their way at once, and an answer makes room for the next', async () => {
  const { connect, ask, answer, sent } = outbox();
  const asked = Array.from({ length: 40 }, (_, number) =>
    ask('TOOL_COMPLETED', { toolCallId: `call_${number}`, result: 1 }),
  );
  connect(65_536);
  expect(sent.map(({ id }) => id)).toEqual(ids(1, 16));
  answer('CHANNEL_RECEIPT', { stored: true }, 'm-3');
  expect(await asked[2]).toEqual({ stored: true });
  answer('CHANNEL_PROBLEM', { status: 404, code: 'NOT_FOUND', detail: 'no such call' }, 'm-1');
  await expect(asked[0]).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(sent.map(({ id }) => id)).toEqual(ids(1, 18));
  // Whatever was not answered is sent again, and the window begins anew.
  connect(65_536);
  expect(sent.map(({ id }) => id)).toEqual(['m-2', ...ids(4, 18)]);
});

test('messages on their way have no more bytes than two of the largest', () => {
  const { connect, ask, answer, sent } = outbox();
  connect(1000);
  const large = { toolCallId: 'call_1', result: 'x'.repeat(700) };
  for (let count = 0; count < 5; count += 1) void ask('TOOL_COMPLETED', large);
  expect(sent.map(({ id }) => id)).toEqual(['m-1', 'm-2']);
  answer('CHANNEL_RECEIPT', {}, 'm-1');
  expect(sent.map(({ id }) => id)).toEqual(['m-1', 'm-2', 'm-3']);
});

test('a message that nobody waits for takes its room until it is answered', async () => {
  const { connect, ask, answer, sent } = outbox();
  connect(1000);
  const large = { toolCallId: 'call_1', result: 'x'.repeat(700) };
  const stop = new AbortController();
  const gone = ask('TOOL_COMPLETED', large, stop.signal);
  for (let count = 0; count < 2; count += 1) void ask('TOOL_COMPLETED', large);
  stop.abort();
  await expect(gone).rejects.toMatchObject({ code: 'ABORTED' });
  expect(sent.map(({ id }) => id)).toEqual(['m-1', 'm-2']);
  expect(answer('CHANNEL_RECEIPT', {}, 'm-1')).toBe(false);
  expect(sent.map(({ id }) => id)).toEqual(['m-1', 'm-2', 'm-3']);
});

test('messages go as fast as the gateway takes them', async () => {
  vi.useFakeTimers();
  const { connect, ask, answer, sent } = outbox();
  connect(65_536, 5);
  const asked = ids(1, 12).map((id) => ask('TOOL_COMPLETED', { toolCallId: id, result: 1 }));
  const answerAll = (): void => {
    for (const { id } of sent) answer('CHANNEL_RECEIPT', {}, id);
  };
  answerAll();
  expect(sent).toHaveLength(5);
  for (const more of [6, 7, 8]) {
    await vi.advanceTimersByTimeAsync(200);
    answerAll();
    expect(sent).toHaveLength(more);
  }
  await vi.advanceTimersByTimeAsync(10_000);
  answerAll();
  await Promise.all(asked);
  // A second later a second's messages may go at once again.
  await vi.advanceTimersByTimeAsync(1000);
  sent.length = 0;
  for (const id of ids(1, 12)) void ask('TOOL_COMPLETED', { toolCallId: id, result: 1 });
  expect(sent).toHaveLength(5);
});

test('a message that is refused for the rate is sent again after a pause, and nothing before it', async () => {
  vi.useFakeTimers();
  const { connect, ask, answer, sent } = outbox();
  connect(65_536, 20);
  const asked = ids(1, 3).map((id) => ask('TOOL_COMPLETED', { toolCallId: id, result: 1 }));
  expect(answer('CHANNEL_RECEIPT', { stored: true }, 'm-1')).toBe(true);
  for (const id of ['m-2', 'm-3']) expect(answer('CHANNEL_PROBLEM', REFUSED, id)).toBe(false);
  const later = ask('TOOL_REJECTED', { approvalId: 'appr_1' });
  expect(sent.map(({ id }) => id)).toEqual(ids(1, 3));
  await vi.advanceTimersByTimeAsync(100);
  expect(sent).toHaveLength(3);
  await vi.advanceTimersByTimeAsync(400);
  expect(sent.map(({ id }) => id)).toEqual([...ids(1, 3), 'm-2', 'm-3', 'm-4']);
  for (const id of ids(2, 4)) answer('CHANNEL_RECEIPT', { stored: true }, id);
  expect(await Promise.all([...asked, later])).toHaveLength(4);
});

test('a message that is refused again and again is given up', async () => {
  vi.useFakeTimers();
  const { made, connect, ask, answer, sent } = outbox();
  connect(65_536, 20);
  const given = ask('TOOL_REJECTED', { approvalId: 'appr_1' }).catch((error: unknown) => error);
  for (let refusals = 0; refusals < 100 && sent.length > refusals; refusals += 1) {
    answer('CHANNEL_PROBLEM', REFUSED, 'm-1');
    await vi.advanceTimersByTimeAsync(15_000);
  }
  expect(await given).toMatchObject({ code: 'RATE_LIMITED', status: 429 });
  expect(sent).toHaveLength(10);
  // Nothing is left to do.
  made.fail(new Error('closed'));
  expect(vi.getTimerCount()).toBe(0);
});
