/**
 * When the next message of one connection may be sent: as many as the gateway takes in a second at once, and then at its rate.
 * After a refusal nothing is sent for a pause, and from then on one message at a time.
 */
export class SendPace {
  readonly #intervalMs: number;
  /** How far ahead of the rate messages may be. */
  #aheadMs: number;
  /** The time up to which the rate is used up. */
  #usedUntil = 0;
  #pausedUntil = 0;

  constructor(messagesPerSecond: number) {
    this.#intervalMs = 1000 / messagesPerSecond;
    this.#aheadMs = Math.max(0, 1000 - this.#intervalMs);
  }

  /** How long to wait before the next message, in milliseconds; 0 if it may be sent. */
  get waitMs(): number {
    return Math.max(0, Math.max(this.#usedUntil - this.#aheadMs, this.#pausedUntil) - performance.now());
  }

  /** Counts a message that is sent. */
  sent(): void {
    this.#usedUntil = Math.max(performance.now(), this.#usedUntil) + this.#intervalMs;
  }

  /** The gateway has refused a message for its rate. */
  refused(pauseMs: number): void {
    this.#aheadMs = 0;
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + pauseMs);
  }
}
