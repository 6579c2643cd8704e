import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { AgentRecordBody, AgentRecordList } from './wire.js';

/** Whose records: an agent's, a person's (id or subject) or a space's. Goals and plans are an agent's. */
export interface RecordOwner {
  agent?: string;
  user?: string;
  space?: string;
}

/** Records of one kind that agents store: goals, memories or plans. */
export class Records {
  readonly #connection: Connection;
  readonly #path: string;

  constructor(connection: Connection, kind: 'goals' | 'memories' | 'plans') {
    this.#connection = connection;
    this.#path = `/v1/${kind}`;
  }

  /** Records ordered by id; `after` is the `nextCursor` of the previous page. */
  list(
    query: RecordOwner & { after?: string; limit?: number },
    options: CallOptions = {},
  ): Promise<AgentRecordList> {
    return this.#connection.json(this.#path, { ...options, query: { ...query } });
  }

  /** Changes members of a record. With `version`, only if nobody else has changed it. */
  change(
    id: string,
    owner: RecordOwner,
    change: Record<string, unknown>,
    { version, ...options }: CallOptions & { version?: number } = {},
  ): Promise<AgentRecordBody> {
    return this.#connection.json(this.#one(id), {
      ...options,
      method: 'PATCH',
      query: { ...owner },
      body: change,
      headers: matching(version),
    });
  }

  /** Deletes a record. With `version`, only if nobody else has changed it. */
  delete(
    id: string,
    owner: RecordOwner,
    { version, ...options }: CallOptions & { version?: number } = {},
  ): Promise<void> {
    return this.#connection.json(this.#one(id), {
      ...options,
      method: 'DELETE',
      query: { ...owner },
      headers: matching(version),
    });
  }

  #one(id: string): string {
    return `${this.#path}/${encodeURIComponent(id)}`;
  }
}

function matching(version: number | undefined): Record<string, string> {
  return version === undefined ? {} : { 'if-match': `"${version}"` };
}
