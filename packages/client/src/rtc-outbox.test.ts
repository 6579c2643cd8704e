import { expect, test } from 'vitest';
import { Connection } from './connection.js';
import { RtcOutbox } from './rtc-outbox.js';
import type { ChannelNotice, ToolEventType } from './tool-message.js';

/** An outbox, what it posted over HTTP, and what it sent over its last connection. */
function outbox() {
  const posted: unknown[] = [];
  const fetch = async (url: unknown, request?: RequestInit): Promise<Response> => {
    posted.push([new URL(String(url)).pathname, JSON.parse(String(request?.body))]);
    return Response.json({ stored: true });
  };
  const made = new RtcOutbox(new Connection({ url: 'http://127.0.0.1:1', fetch }, () => {}), 'space_1');
  const sent: Array<{ id: string; toolId: string }> = [];
  const connect = (bytesMax: number): void => {
    sent.length = 0;
    made.connect({ bytesMax, send: (text) => sent.push(JSON.parse(text)) });
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
