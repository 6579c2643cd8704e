/**
 * Which of the tabs that show a chat executes its calls: the one that sent the last request, as long as it is at work. The
 * browser hands the lock on when that tab has finished, was closed or has crashed.
 */
export class Turn {
  readonly #lock: string;
  #release: (() => void) | undefined;
  #waiting: AbortController | undefined;

  constructor(chatId: string) {
    this.#lock = `turn in chat ${chatId}`;
  }

  /** This tab sends a request: from now on it executes. */
  take(): void {
    this.#waiting?.abort();
    if (!this.#release) void this.#hold({ steal: true });
  }

  /** Whether this tab executes. If another one does, `onFree` is called when that one has finished or is gone. */
  async isMine(onFree: () => void): Promise<boolean> {
    // Two calls may ask at once: the second finds the lock with this tab.
    if (this.#release || (await this.#hold({ ifAvailable: true })) || this.#release) return true;
    this.#waiting ??= this.#wait(onFree);
    return false;
  }

  /** Whether this tab still executes. */
  readonly isHeld = (): boolean => this.#release !== undefined || !navigator.locks;

  /** This tab has finished: another one may go on. */
  readonly end = (): void => {
    this.#release?.();
    this.#release = undefined;
  };

  /** The page does not show the chat any more. */
  readonly leave = (): void => {
    this.#waiting?.abort();
    this.end();
  };

  #wait(onFree: () => void): AbortController {
    const waiting = new AbortController();
    void this.#hold({ signal: waiting.signal }).then((isHeld) => {
      this.#waiting = undefined;
      if (isHeld) onFree();
    });
    return waiting;
  }

  /** Resolves with whether this tab holds the lock. */
  #hold(options: LockOptions): Promise<boolean> {
    return new Promise((resolve) => {
      // Pages that are not served securely have no locks: there each tab claims its calls under a name of its own.
      if (!navigator.locks) return resolve(true);
      let release: (() => void) | undefined;
      const granted = (lock: Lock | null): Promise<void> | undefined => {
        resolve(lock !== null);
        if (!lock) return undefined;
        return new Promise<void>((end) => {
          release = end;
          this.#release = end;
        });
      };
      navigator.locks.request(this.#lock, options, granted).catch(() => {
        // The wait was given up, or another tab has taken the lock.
        resolve(false);
        if (release && this.#release === release) this.#release = undefined;
      });
    });
  }
}
