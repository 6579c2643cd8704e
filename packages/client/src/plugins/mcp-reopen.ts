import { pause, retryDelay } from '../back-off.js';

/** How often a process is started within the window; more ends would be a server that cannot run. */
const STARTS_MAX = 5;
const STARTS_WINDOW_MS = 60_000;

/** When a connection may be opened: after a wait that grows with each failure, and a process not too often. */
export class Reopening {
  readonly #isProcess: boolean;
  readonly #now: () => number;
  /** When it was opened last, within the window. */
  #starts: number[] = [];
  #failures = 0;

  constructor(isProcess: boolean, now: () => number = () => performance.now()) {
    this.#isProcess = isProcess;
    this.#now = now;
  }

  /** Resolves when it may be opened, or at once when the signal fires. Throws if it was started too often. */
  async turn(signal: AbortSignal): Promise<void> {
    if (this.#failures > 0) await pause(retryDelay(this.#failures), signal);
    if (!this.#isProcess) return;
    const now = this.#now();
    this.#starts = this.#starts.filter((start) => start > now - STARTS_WINDOW_MS);
    const [oldest] = this.#starts;
    if (oldest !== undefined && this.#starts.length >= STARTS_MAX) {
      const seconds = Math.ceil((oldest + STARTS_WINDOW_MS - now) / 1000);
      throw new Error(
        `its process ended ${STARTS_MAX} times within ${STARTS_WINDOW_MS / 1000} s, it is started again in ${seconds} s at the earliest`,
      );
    }
    this.#starts.push(now);
  }

  opened(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
  }
}
