import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { Receipt } from './wire.js';

/** Calls that wait for a signal; needs a secret key. */
export class Calls {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Ends the wait of a `waiting` call: its output is `{signal: value}`. The same signal again gets the same
   * receipt; a different value is a `ConflictError`, one that arrives too late a `GoneError`.
   */
  signal(callId: string, value: unknown = null, options: CallOptions = {}): Promise<Receipt> {
    const path = `/v1/calls/${encodeURIComponent(callId)}/signal`;
    return this.#connection.json(path, { ...options, method: 'POST', body: { value }, safe: true });
  }
}
