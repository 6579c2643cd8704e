import { pause, retryDelay } from './back-off.js';
import type { Connection } from './connection.js';
import { ToolgateError, UnavailableError } from './error.js';
import type { RunRow } from './operator-wire.js';
import { readEvents } from './sse.js';

/** Options of `runs.watch`. */
export interface WatchOptions {
  /** A run was created, has changed its status, or has ended. */
  onRun: (run: RunRow) => void;
  /** Changes may have been missed: lists must be read again. Also called after every reconnect. */
  onReset?: () => void;
  /** The connection is open, or was cut and is retried. */
  onConnection?: (state: 'live' | 'cut') => void;
  /** An error that a retry does not fix ended the watch. */
  onError?: (error: unknown) => void;
}

/** The rows of a project's runs as they change. Reconnects until it is closed. */
export class RunWatch {
  readonly #connection: Connection;
  readonly #options: WatchOptions;
  readonly #stop = new AbortController();

  constructor(connection: Connection, options: WatchOptions) {
    this.#connection = connection;
    this.#options = options;
    void this.#follow();
  }

  /** Ends the watch. No handler is called after this. */
  close(): void {
    this.#stop.abort();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    for (let failures = 0, opened = false; !signal.aborted; ) {
      try {
        const response = await this.#connection.send('/v1/runs/events', {
          headers: { accept: 'text/event-stream' },
          safe: false,
          signal,
        });
        this.#options.onConnection?.('live');
        if (opened) this.#options.onReset?.();
        opened = true;
        failures = 0;
        if (response.body) await this.#read(response.body);
      } catch (error) {
        if (signal.aborted) return;
        const passes =
          error instanceof UnavailableError || !(error instanceof ToolgateError) || error.retryable;
        if (!passes) return this.#options.onError?.(error);
      }
      if (signal.aborted) return;
      this.#options.onConnection?.('cut');
      failures += 1;
      await pause(retryDelay(failures), signal);
    }
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    for await (const { event, data } of readEvents(body, this.#stop.signal)) {
      if (this.#stop.signal.aborted) return;
      if (event === 'run') this.#options.onRun(JSON.parse(data) as RunRow);
      else if (event === 'reset') this.#options.onReset?.();
    }
  }
}
