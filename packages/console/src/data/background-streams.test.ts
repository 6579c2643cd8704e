import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CONVERSATION_MS_MAX, pauseInBackground } from './background-streams.ts';

/** A page that can be put in the background. */
class Page extends EventTarget {
  hidden = false;

  show(isShown: boolean): void {
    this.hidden = !isShown;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}

const STREAM = { headers: { accept: 'text/event-stream' }, signal: new AbortController().signal };
let page: Page;
let sent: Array<{ path: string; signal: AbortSignal | null | undefined }>;
let send: typeof globalThis.fetch;

beforeEach(() => {
  vi.useFakeTimers();
  page = new Page();
  sent = [];
  send = pauseInBackground(
    async (input, init) => {
      sent.push({ path: new URL(String(input)).pathname, signal: init?.signal });
      return new Response('');
    },
    page as unknown as Document,
  );
});

afterEach(() => vi.useRealTimers());

test('a stream ends with the page in the background, and a new one begins when it is looked at', async () => {
  await send('http://gateway/v1/runs/events', STREAM);
  page.show(false);
  expect(sent[0]?.signal?.aborted).toBe(true);
  const again = send('http://gateway/v1/runs/events', STREAM);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sent).toHaveLength(1);
  page.show(true);
  await again;
  expect(sent).toHaveLength(2);
  expect(sent[1]?.signal?.aborted).toBe(false);
});

test('a conversation goes on in the background for a while', async () => {
  await send('http://gateway/v1/spaces/space_1/events', STREAM);
  page.show(false);
  await vi.advanceTimersByTimeAsync(CONVERSATION_MS_MAX - 1);
  expect(sent[0]?.signal?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent[0]?.signal?.aborted).toBe(true);
});

test('a conversation that is looked at again in time keeps its stream', async () => {
  await send('http://gateway/v1/spaces/space_1/events', STREAM);
  page.show(false);
  await vi.advanceTimersByTimeAsync(CONVERSATION_MS_MAX - 1);
  page.show(true);
  await vi.advanceTimersByTimeAsync(CONVERSATION_MS_MAX);
  expect(sent[0]?.signal?.aborted).toBe(false);
});

test('other requests are sent from the background too', async () => {
  page.show(false);
  await send('http://gateway/v1/runs', { headers: { accept: 'application/json' } });
  expect(sent).toHaveLength(1);
});

test('a caller that gives up does not wait for the page', async () => {
  page.show(false);
  const stop = new AbortController();
  const asked = send('http://gateway/v1/runs/events', { ...STREAM, signal: stop.signal });
  stop.abort(new Error('closed'));
  await expect(asked).rejects.toThrow('closed');
  expect(sent).toHaveLength(0);
});
