import type { Connection } from './connection.js';
import type { Overview, Prices } from './operator-wire.js';
import type { CallOptions } from './resources.js';

/** What an operator wants to know of the gateway; needs a secret key or a session. */
export class GatewayInfo {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Open runs, figures of the last 24 hours, and the health of the parts. */
  overview(options: CallOptions = {}): Promise<Overview> {
    return this.#connection.json('/v1/overview', options);
  }

  /** Prices of models per million tokens; empty where none are configured. */
  prices(options: CallOptions = {}): Promise<Prices> {
    return this.#connection.json('/v1/prices', options);
  }

  /** Resolves when the gateway answers; throws otherwise. Needs no key, and is not retried. */
  async ping(options: CallOptions = {}): Promise<void> {
    await this.#connection.json('/healthz', { ...options, safe: false });
  }
}
