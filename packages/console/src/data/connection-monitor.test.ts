import { expect, test, vi } from 'vitest';
import { ConnectionMonitor } from './connection-monitor.ts';

test('a request that fails cuts the connection, and the health check brings it back', async () => {
  vi.useFakeTimers();
  let isUp = false;
  const asked: string[] = [];
  const monitor = new ConnectionMonitor('http://gateway', async (input) => {
    asked.push(String(input));
    if (!isUp) throw new TypeError('fetch failed');
    return new Response('{}');
  });
  const heard: string[] = [];
  monitor.subscribe(() => heard.push(monitor.reach()));
  await expect(monitor.fetch('http://gateway/v1/runs')).rejects.toThrow('fetch failed');
  expect(monitor.reach()).toBe('cut');
  await vi.advanceTimersByTimeAsync(2_000);
  expect(monitor.reach()).toBe('cut');
  isUp = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(heard).toEqual(['cut', 'live']);
  expect(asked).toContain('http://gateway/healthz');
  vi.useRealTimers();
});

test('a request that its caller has aborted says nothing of the gateway', async () => {
  const stop = new AbortController();
  const monitor = new ConnectionMonitor('http://gateway', async () => {
    stop.abort();
    throw new DOMException('aborted', 'AbortError');
  });
  await expect(monitor.fetch('http://gateway/v1/runs', { signal: stop.signal })).rejects.toThrow('aborted');
  expect(monitor.reach()).toBe('live');
});
