import { afterEach, expect, test, vi } from 'vitest';
import { Connection } from './connection.js';
import { RtcChannel } from './rtc-channel.js';

const gateway = new Connection({ url: 'http://127.0.0.1:1' }, () => {});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('where there is no WebRTC the channel fails at once, with words', async () => {
  const errors: unknown[] = [];
  const channel = new RtcChannel(gateway, 'space_1', { onError: (error) => errors.push(error) });
  await expect(channel[Symbol.asyncIterator]().next()).rejects.toThrow('no RTCPeerConnection');
  expect(channel.closed).toBe(true);
  expect(errors).toHaveLength(1);
  await expect(channel.accept('appr_1')).rejects.toThrow('no RTCPeerConnection');
});

test('a channel whose signal has fired is closed, and what is sent is refused', async () => {
  const channel = new RtcChannel(gateway, 'space_1', { after: 7, signal: AbortSignal.abort() });
  expect([channel.closed, channel.cursor]).toEqual([true, 7]);
  await expect(channel.reject('appr_1')).rejects.toMatchObject({ code: 'ABORTED' });
  const message = { type: 'TOOL_COMPLETED' as const, toolId: 'demo', timestamp: 1 };
  await expect(channel.accept(message)).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
});

/** Replaces WebRTC and the gateway by ones whose channels open at once and do `onSend` with each message. */
function openAtOnce(onSend: (channel: FakeChannel, text: string) => void) {
  const opened: number[] = [];
  class FakePeer extends EventTarget {
    readonly localDescription = { sdp: 'offer' };
    readonly connectionState = 'connected';
    readonly #channel = new FakeChannel(onSend);
    createDataChannel = (): FakeChannel => this.#channel;
    close = (): void => {};
    async setLocalDescription(): Promise<void> {}
    async setRemoteDescription(): Promise<void> {
      opened.push(Date.now());
      this.#channel.say({ type: 'CHANNEL_READY', timestamp: 1 });
    }
  }
  vi.stubGlobal('RTCPeerConnection', FakePeer);
  const fetch = async (): Promise<Response> =>
    Response.json({ type: 'answer', sdp: 'answer', messageBytesMax: 65_536 });
  return { opened, gateway: new Connection({ url: 'http://127.0.0.1:1', fetch }, () => {}) };
}

class FakeChannel extends EventTarget {
  readonly #onSend: (channel: FakeChannel, text: string) => void;
  constructor(onSend: (channel: FakeChannel, text: string) => void) {
    super();
    this.#onSend = onSend;
  }
  send = (text: string): void => this.#onSend(this, text);
  say = (notice: unknown): boolean =>
    this.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(notice) }));
  cut = (): boolean => this.dispatchEvent(new Event('close'));
}

/** When channels were opened, in a minute that begins with a message. */
async function opensOfAMinute(onSend: (channel: FakeChannel, text: string) => void): Promise<number[]> {
  vi.useFakeTimers();
  const { opened, gateway: fake } = openAtOnce(onSend);
  const channel = new RtcChannel(fake, 'space_1', { onMessage: () => {} });
  channel.accept('appr_1').catch(() => {});
  await vi.advanceTimersByTimeAsync(60_000);
  channel.close();
  return opened;
}

test('a message that cuts each connection does not open one after another', async () => {
  const opens = await opensOfAMinute((channel) => void channel.cut());
  expect(opens.length).toBeLessThan(16);
});

test('after an answered message the back-off begins anew', async () => {
  let sends = 0;
  const opens = await opensOfAMinute((channel, text) => {
    sends += 1;
    // Cut six times, which is a back-off of eight seconds, then answered and cut once more.
    if (sends > 6) channel.say({ type: 'CHANNEL_RECEIPT', id: JSON.parse(text).id, timestamp: 1 });
    channel.cut();
  });
  expect([sends, opens.length]).toEqual([7, 8]);
  const waits = opens.map((at, index) => at - (opens[index - 1] ?? at));
  expect(waits.at(-2)).toBeGreaterThanOrEqual(4000);
  expect(waits.at(-1)).toBeLessThanOrEqual(250);
});

test('a decision says what it was made with, and nothing that was not given', async () => {
  const payloads: unknown[] = [];
  const { gateway: fake } = openAtOnce((channel, text) => {
    const { id, payload } = JSON.parse(text);
    payloads.push(payload);
    channel.say({ type: 'CHANNEL_RECEIPT', id, timestamp: 1 });
  });
  const channel = new RtcChannel(fake, 'space_1', { onMessage: () => {} });
  await channel.accept('appr_1');
  await channel.accept('appr_2', { input: { topic: 'Luce' }, remember: false });
  await channel.reject('appr_3', { reason: 'basta' });
  channel.close();
  expect(payloads).toEqual([
    { approvalId: 'appr_1' },
    { approvalId: 'appr_2', input: { topic: 'Luce' }, remember: false },
    { approvalId: 'appr_3', reason: 'basta' },
  ]);
});

test('results that waited for the connection are all stored, at the rate and with the room that the gateway has', async () => {
  vi.useFakeTimers();
  // 20 messages per second, 40 at once, and 256 KiB of messages that wait to be handled.
  let tokens = 40;
  let filledAt = Date.now();
  let waitingBytes = 0;
  const refused: string[] = [];
  const { opened, gateway: fake } = openAtOnce((channel, text) => {
    waitingBytes += text.length;
    if (waitingBytes > 4 * 65_536) channel.cut();
    setTimeout(() => {
      waitingBytes -= text.length;
      const { id } = JSON.parse(text);
      tokens = Math.min(40, tokens + ((Date.now() - filledAt) * 20) / 1000);
      filledAt = Date.now();
      if (tokens >= 1) {
        tokens -= 1;
        channel.say({ type: 'CHANNEL_RECEIPT', id, timestamp: 1 });
        return;
      }
      refused.push(id);
      const payload = { status: 429, code: 'RATE_LIMITED', detail: 'more than 20 messages per second' };
      channel.say({ type: 'CHANNEL_PROBLEM', id, timestamp: 1, payload });
    }, 5);
  });
  const channel = new RtcChannel(fake, 'space_1', { onMessage: () => {} });
  const result = 'x'.repeat(10_000);
  const stored = Promise.all(
    Array.from({ length: 300 }, (_, number) => channel.submitResult(`call_${number}`, { result })),
  );
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await stored).toHaveLength(300);
  expect([opened.length, refused.length]).toEqual([1, 0]);
  channel.close();
});
