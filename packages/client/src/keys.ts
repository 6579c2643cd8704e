import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { CreateKey, Key, KeyList } from './wire.js';

/** The API keys of the caller's project; needs a secret key or a session. */
export class Keys {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async list(options: CallOptions = {}): Promise<Key[]> {
    return (await this.#connection.json<KeyList>('/v1/keys', options)).keys;
  }

  /** Creates a key. Only this response contains the key itself. */
  create(key: CreateKey, options: CallOptions = {}): Promise<Key> {
    return this.#connection.json('/v1/keys', { ...options, method: 'POST', body: key });
  }

  /** Revokes a key: requests with it are rejected, and streams that were opened with it end. */
  remove(keyId: string, options: CallOptions = {}): Promise<void> {
    const path = `/v1/keys/${encodeURIComponent(keyId)}`;
    return this.#connection.json(path, { ...options, method: 'DELETE', safe: true });
  }
}
