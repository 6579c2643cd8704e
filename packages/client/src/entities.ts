import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { Entity, PutEntity } from './wire.js';

/** Lasting participants of a project: people, agents, devices. */
export class Entities {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** An entity, by its subject. */
  get(subject: string, options: CallOptions = {}): Promise<Entity> {
    return this.#connection.json(path(subject), options);
  }

  /** Creates an entity, or replaces what is known of it. Needs a secret key or a session. */
  put(subject: string, entity: PutEntity, options: CallOptions = {}): Promise<Entity> {
    return this.#connection.json(path(subject), { ...options, method: 'PUT', body: entity, safe: true });
  }
}

function path(subject: string): string {
  return `/v1/entities/${encodeURIComponent(subject)}`;
}
