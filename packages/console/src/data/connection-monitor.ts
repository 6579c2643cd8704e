/** Whether the gateway can be reached: `cut` from the first request that fails until one succeeds. */
export type Reach = 'live' | 'cut';

const PROBE_MS_MIN = 500;
const PROBE_MS_MAX = 5_000;

/**
 * Watches all requests of the page. When one cannot reach the gateway, it asks `/healthz` until that answers,
 * so that the page knows at once when it can go on.
 */
export class ConnectionMonitor {
  readonly #base: string;
  readonly #send: typeof globalThis.fetch;
  readonly #listeners = new Set<() => void>();
  #reach: Reach = 'live';
  #probing = false;

  constructor(base: string, send: typeof globalThis.fetch = (...request) => globalThis.fetch(...request)) {
    this.#base = base;
    this.#send = send;
  }

  /** Replaces `fetch` for the client, and notes whether requests reach the gateway. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    try {
      const response = await this.#send(input, init);
      this.#set('live');
      return response;
    } catch (error) {
      if (!init?.signal?.aborted) this.#cut();
      throw error;
    }
  };

  readonly reach = (): Reach => this.#reach;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #cut(): void {
    this.#set('cut');
    if (this.#probing) return;
    this.#probing = true;
    void this.#probe().finally(() => {
      this.#probing = false;
    });
  }

  async #probe(): Promise<void> {
    for (let wait = PROBE_MS_MIN; this.#reach === 'cut'; wait = Math.min(wait * 1.5, PROBE_MS_MAX)) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      try {
        await this.#send(`${this.#base}/healthz`);
        this.#set('live');
      } catch {
        // Not there yet.
      }
    }
  }

  #set(reach: Reach): void {
    if (reach === this.#reach) return;
    this.#reach = reach;
    for (const listener of this.#listeners) listener();
  }
}
