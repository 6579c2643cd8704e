import { afterEach, describe, expect, test } from 'vitest';
import { CallRunner } from './call-runner.js';
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
    const running = new CallRunner(tools, () => {}).run(job);
    await new Promise((resolve) => setTimeout(resolve));
    expect(leases).toEqual([20, 90, 20]);
    finish('done');
    expect(await running).toBe('answered');
    page.become('hidden');
    expect(leases).toHaveLength(3);
  });
});
