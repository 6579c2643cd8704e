import { expect, test } from 'vitest';
import { Connection } from './connection.js';
import { RtcChannel } from './rtc-channel.js';

const gateway = new Connection({ url: 'http://127.0.0.1:1' }, () => {});

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
