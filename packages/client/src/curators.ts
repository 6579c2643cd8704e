import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { Curator, CuratorList, PutCurator } from './wire.js';

/** Who may sign plugins for the project; needs a secret key or a session. */
export class Curators {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** All curators, revoked ones included. */
  async list(options: CallOptions = {}): Promise<Curator[]> {
    return (await this.#connection.json<CuratorList>('/v1/curators', options)).curators;
  }

  /** Adds a curator, or adds keys to one. */
  put(curator: string, change: PutCurator, options: CallOptions = {}): Promise<Curator> {
    return this.#connection.json(path(curator), { ...options, method: 'PUT', body: change, safe: true });
  }

  /** Revokes a curator with all its keys: nothing that it has signed runs any more. */
  revoke(curator: string, options: CallOptions = {}): Promise<void> {
    return this.#connection.json(path(curator), { ...options, method: 'DELETE', safe: true });
  }
}

function path(curator: string): string {
  return `/v1/curators/${encodeURIComponent(curator)}`;
}
