import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { DeletionReport, Entity, PutEntity } from './wire.js';

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

  /**
   * Deletes a person for good: spaces of their own, their words in all others, and what is stored for them. Needs a secret
   * key or a session.
   */
  delete(subject: string, options: CallOptions = {}): Promise<DeletionReport> {
    return this.#connection.json(path(subject), { ...options, method: 'DELETE', safe: true });
  }

  /** What is stored of a person, as JSON lines, each an object with a `kind`. Needs a secret key or a session. */
  async export(subject: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#connection.send(`${path(subject)}/export`, options);
    return response.body ?? new ReadableStream({ start: (controller) => controller.close() });
  }
}

function path(subject: string): string {
  return `/v1/entities/${encodeURIComponent(subject)}`;
}
