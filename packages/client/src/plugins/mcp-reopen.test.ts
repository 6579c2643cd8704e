import { afterEach, expect, test, vi } from 'vitest';
import { Reopening } from './mcp-reopen.js';

afterEach(() => {
  vi.useRealTimers();
});
const { signal } = new AbortController();

test('a process is started five times a minute, an address opened as often as one likes', async () => {
  let now = 0;
  const process = new Reopening(true, () => now);
  for (let starts = 0; starts < 5; starts += 1) await process.turn(signal);
  now = 59_000;
  await expect(process.turn(signal)).rejects.toThrow(
    'its process ended 5 times within 60 s, it is started again in 1 s',
  );
  now = 61_000;
  await process.turn(signal);
  const address = new Reopening(false, () => now);
  for (let openings = 0; openings < 50; openings += 1) await address.turn(signal);
});

test('after failures there is a wait that grows, has an end, and is over when it opens', async () => {
  vi.useFakeTimers();
  const waitOf = async (reopening: Reopening): Promise<number> => {
    const since = Date.now();
    const turn = reopening.turn(signal);
    await vi.runAllTimersAsync();
    await turn;
    return Date.now() - since;
  };
  const reopening = new Reopening(false);
  expect(await waitOf(reopening)).toBe(0);
  reopening.failed();
  expect(await waitOf(reopening)).toBeGreaterThanOrEqual(125);
  for (let failures = 0; failures < 20; failures += 1) reopening.failed();
  const longest = await waitOf(reopening);
  expect(longest).toBeGreaterThan(5000);
  expect(longest).toBeLessThanOrEqual(15_000);
  reopening.opened();
  expect(await waitOf(reopening)).toBe(0);
});
