import { afterEach, describe, expect, test } from 'vitest';
import { CallEnded, type CallGateway, CallRunner } from './call-runner.js';
import { AbortedError } from './error.js';
import type { ClaimOptions, Tools } from './tools.js';

/** What a page knows of itself. */
class Page extends EventTarget {
  visibilityState = 'visible';
  become(state: 'visible' | 'hidden'): void {
    this.visibilityState = state;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}

afterEach(() => {
  Reflect.deleteProperty(globalThis, 'document');
});

describe('the lease of a page', () => {
  test('is renewed at once, for longer, when the page is hidden', async () => {
    const page = new Page();
    Object.defineProperty(globalThis, 'document', { value: page, configurable: true });
    const leases: Array<number | undefined> = [];
    const tools = {
      claim: async (_: string, { leaseSeconds }: ClaimOptions) => {
        leases.push(leaseSeconds);
      },
      submitRunResult: async () => {},
    } as unknown as Tools;
    let finish: (value: string) => void = () => {};
    const execute = () =>
      new Promise<string>((resolve) => {
        finish = resolve;
        page.become('hidden');
        page.become('visible');
      });
    const job = {
      call: { toolCallId: 'call_a_0', toolName: 'wait', args: {} },
      holder: 'tab',
      execute,
      leaseSeconds: () => (page.visibilityState === 'hidden' ? 90 : 20),
      signal: new AbortController().signal,
    };
    const running = new CallRunner({ tools } as CallGateway, () => {}).run(job);
    await new Promise((resolve) => setTimeout(resolve));
    expect(leases).toEqual([20, 90, 20]);
    finish('done');
    expect(await running).toBe('answered');
    page.become('hidden');
    expect(leases).toHaveLength(3);
  });
});

describe('a call that is stopped', () => {
  const stopWith = async (reason: unknown): Promise<string[]> => {
    const asked: string[] = [];
    const stop = new AbortController();
    const tools = {
      claim: async () => asked.push('claim'),
      // The event of the result arrives before the response.
      submitRunResult: async () => {
        asked.push('result');
        stop.abort(reason);
        throw new AbortedError('ABORTED', 'stopped');
      },
      release: async () => asked.push('release'),
    } as unknown as Tools;
    const call = { toolCallId: 'call_a_0', toolName: 'wait', args: {} };
    const job = { call, holder: 'tab', execute: () => 'done', signal: stop.signal };
    await expect(new CallRunner({ tools } as CallGateway, () => {}).run(job)).rejects.toThrow(AbortedError);
    return asked;
  };

  test('is released, unless it has its outcome', async () => {
    expect(await stopWith(new Error('the page is closed'))).toEqual(['claim', 'result', 'release']);
    expect(await stopWith(new CallEnded())).toEqual(['claim', 'result']);
  });
});
