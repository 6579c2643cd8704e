/** Queue length at which producers should wait (backpressure). */
const LENGTH_MAX = 256;

/** A queue with one reader. Producers that can wait should await `room`. */
export class Channel<T> {
  #items: T[] = [];
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  push(item: T): void {
    this.#items.push(item);
    this.#wakeReader?.();
  }

  /** Resolves when the queue is below its limit. */
  async room(): Promise<void> {
    if (this.#items.length < LENGTH_MAX) return;
    await new Promise<void>((resolve) => {
      this.#wakeWriter = resolve;
    });
  }

  async take(): Promise<T> {
    while (this.#items.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
    if (this.#items.length <= LENGTH_MAX) this.#wakeWriter?.();
    return this.#items.shift() as T;
  }
}
