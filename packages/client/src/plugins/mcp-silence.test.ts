import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SilenceWatch } from './mcp-silence.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a call is given up after a silence, and not before', () => {
  const watched = new SilenceWatch(1000).watch();
  vi.advanceTimersByTime(900);
  watched.heard();
  vi.advanceTimersByTime(900);
  expect(watched.signal.aborted).toBe(false);
  vi.advanceTimersByTime(100);
  expect(watched.signal.reason).toMatchObject({ message: 'the server was silent for 1 s' });
});

test('the time in which a person thinks does not count', async () => {
  const silence = new SilenceWatch(1000);
  const watched = silence.watch();
  let answer = (): void => {};
  const held = silence.hold(() => new Promise<void>((resolve) => (answer = resolve)));
  const later = silence.watch();
  vi.advanceTimersByTime(100_000);
  expect([watched.signal.aborted, later.signal.aborted]).toEqual([false, false]);
  answer();
  await held;
  vi.advanceTimersByTime(1000);
  expect([watched.signal.aborted, later.signal.aborted]).toEqual([true, true]);
});

test('a call that has ended leaves no timer', () => {
  new SilenceWatch(1000).watch().end();
  expect(vi.getTimerCount()).toBe(0);
});
