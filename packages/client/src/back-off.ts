const DELAY_FIRST_MS = 250;
const DELAY_MAX_MS = 15_000;

/**
 * The wait after the `attempt`-th failure: exponential back-off with a maximum, and jitter so that clients do
 * not retry at the same time.
 */
export function retryDelay(attempt: number): number {
  const ceiling = Math.min(DELAY_MAX_MS, DELAY_FIRST_MS * 2 ** (attempt - 1));
  return ceiling / 2 + Math.random() * (ceiling / 2);
}

/** Resolves after `ms`, or as soon as the signal fires. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}
