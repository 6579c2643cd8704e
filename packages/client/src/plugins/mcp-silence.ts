/** Longest wait of a timer, for requests that this class and not the official client gives up. */
export const TIMER_MS_MAX: number = 2 ** 31 - 1;

/** A call that is watched. */
export interface Watched {
  /** Fires after too long a silence. */
  readonly signal: AbortSignal;
  /** The server was heard. */
  heard(): void;
  end(): void;
}

/** Gives up calls whose server is silent for too long. The time in which a person is asked does not count. */
export class SilenceWatch {
  readonly #limitMs: number;
  readonly #calls = new Map<AbortController, ReturnType<typeof setTimeout> | undefined>();
  #held = 0;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  watch(): Watched {
    const call = new AbortController();
    this.#start(call);
    return {
      signal: call.signal,
      heard: () => this.#start(call),
      end: () => {
        clearTimeout(this.#calls.get(call));
        this.#calls.delete(call);
      },
    };
  }

  /** Stops all clocks while `work` goes on. They start from zero after it. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    this.#held += 1;
    for (const timer of this.#calls.values()) clearTimeout(timer);
    try {
      return await work();
    } finally {
      this.#held -= 1;
      for (const call of this.#calls.keys()) this.#start(call);
    }
  }

  #start(call: AbortController): void {
    clearTimeout(this.#calls.get(call));
    const give = (): void => call.abort(new Error(`the server was silent for ${this.#limitMs / 1000} s`));
    this.#calls.set(call, this.#held > 0 ? undefined : setTimeout(give, this.#limitMs));
  }
}
