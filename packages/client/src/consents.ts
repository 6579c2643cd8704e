import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { Consent, ConsentList } from './wire.js';

/** Decisions that are remembered: calls that run without being asked about. */
export class Consents {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The remembered decisions of a space, newest first: a backend's all, a user's own. */
  async list(spaceId: string, options: CallOptions = {}): Promise<Consent[]> {
    return (await this.#connection.json<ConsentList>(this.#path(spaceId), options)).consents;
  }

  /** Revokes one: the next call of its tool asks again. A `NotFoundError` if it is not there. */
  revoke(spaceId: string, consentId: string, options: CallOptions = {}): Promise<void> {
    const path = `${this.#path(spaceId)}/${encodeURIComponent(consentId)}`;
    return this.#connection.json(path, { ...options, method: 'DELETE' });
  }

  #path(spaceId: string): string {
    return `/v1/spaces/${encodeURIComponent(spaceId)}/consents`;
  }
}
