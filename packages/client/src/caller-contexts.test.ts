import { expect, test, vi } from 'vitest';
import { CallerContexts, callerContext } from './caller-contexts.js';
import type { ToolCall } from './wire.js';

const call = (toolCallId: string): ToolCall => ({
  runId: 'run_1',
  spaceId: 'space_1',
  status: 'running',
  toolCallId,
});

/** A call that is being made, and what ends the request. */
function request() {
  let respond: (call: ToolCall) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const response = new Promise<ToolCall>((resolve, reject) => {
    respond = resolve;
    fail = reject;
  });
  return { make: () => response, respond, fail };
}

test('a handler that is asked before the response to the request waits for it', async () => {
  const contexts = new CallerContexts();
  const { make, respond } = request();
  const begun = contexts.begin('sheet', make, { userId: 'ann' });
  const known = contexts.of('sheet', 'call_1_0');
  respond(call('call_1_0'));
  expect(await known).toEqual({ userId: 'ann' });
  expect(await begun).toEqual(call('call_1_0'));
  contexts.forget('call_1_0');
  expect(await contexts.of('sheet', 'call_1_0')).toBeUndefined();
});

test('a wait that is over leaves no timer', async () => {
  vi.useFakeTimers();
  try {
    const contexts = new CallerContexts();
    const { make, respond } = request();
    const begun = contexts.begin('sheet', make, { userId: 'ann' });
    const known = contexts.of('sheet', 'call_1_0');
    expect(vi.getTimerCount()).toBe(1);
    respond(call('call_1_0'));
    await begun;
    expect(await known).toEqual({ userId: 'ann' });
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('calls of others have no context, and those of other tools do not wait', async () => {
  const contexts = new CallerContexts();
  const { make, fail } = request();
  const begun = contexts.begin('sheet', make, { userId: 'ann' });
  expect(await contexts.of('other', 'call_2_0')).toBeUndefined();
  const known = contexts.of('sheet', 'call_2_0');
  fail(new Error('cut'));
  await expect(begun).rejects.toThrow('cut');
  expect(await known).toBeUndefined();
});

test('calls that never end do not pile up', async () => {
  const contexts = new CallerContexts();
  for (let index = 0; index <= 1000; index += 1)
    await contexts.begin('sheet', async () => call(`call_${index}_0`), { userId: `user-${index}` });
  expect(await contexts.of('sheet', 'call_0_0')).toBeUndefined();
  expect(await contexts.of('sheet', 'call_1_0')).toEqual({ userId: 'user-1' });
  expect(await contexts.of('sheet', 'call_1000_0')).toEqual({ userId: 'user-1000' });
});

test('only what is for the handler is kept of a context', () => {
  const given = { userId: 'ann', userProfile: undefined, sessionId: 'space_1', waitSeconds: 3 };
  expect(callerContext(given)).toEqual({ userId: 'ann' });
  expect(callerContext({})).toBeUndefined();
});
