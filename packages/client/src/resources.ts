import type { ApprovalDecision } from './chunk.js';
import type { Connection, RequestOptions } from './connection.js';
import { EventStream, type SubscribeOptions } from './event-stream.js';
import { freshKey } from './fresh-key.js';
import type {
  Agent,
  AgentList,
  CreateSpace,
  Decided,
  Posted,
  PostMessage,
  Run,
  RunList,
  RunStopped,
  Space,
  SpaceList,
  StartRun,
  Status,
} from './wire.js';

/** What every request may be given. */
export interface CallOptions {
  signal?: AbortSignal;
}

/** One activation of an agent each. */
export class Runs {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Starts a run and gives its ids; `chatStream` does this and watches it. Safe to be cut: it starts once. */
  start(run: StartRun | string, options: CallOptions & { idempotencyKey?: string } = {}): Promise<Posted> {
    const body = typeof run === 'string' ? { message: run } : run;
    return this.#connection.json('/v1/runs', postOnce(body, options));
  }

  /** A run as it stands: status, open calls and approvals, last words. */
  get(runId: string, options: CallOptions = {}): Promise<Run> {
    return this.#connection.json(`/v1/runs/${encodeURIComponent(runId)}`, options);
  }

  /** Newest first; `before` takes the `nextCursor` of the page before. */
  list(query: RunQuery = {}, options: CallOptions = {}): Promise<RunList> {
    return this.#connection.json('/v1/runs', { ...options, query: { ...query } });
  }

  /** Stops a run and everything below it. */
  cancel(runId: string, options: CallOptions = {}): Promise<RunStopped> {
    const path = `/v1/runs/${encodeURIComponent(runId)}/cancel`;
    return this.#connection.json(path, { ...options, method: 'POST', safe: true });
  }

  /** Its events until it ends. */
  subscribe(runId: string, options: SubscribeOptions = {}): EventStream {
    return new EventStream(this.#connection, {
      ...options,
      path: `/v1/runs/${encodeURIComponent(runId)}/events`,
    });
  }
}

/** Which runs to list. */
export interface RunQuery {
  space?: string;
  status?: Status;
  parent?: string;
  before?: string;
  limit?: number;
}

/** Shared conversations. */
export class Spaces {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Makes a space. */
  create(space: CreateSpace = {}, options: CallOptions = {}): Promise<Space> {
    return this.#connection.json('/v1/spaces', { ...options, method: 'POST', body: space });
  }

  get(spaceId: string, options: CallOptions = {}): Promise<Space> {
    return this.#connection.json(`/v1/spaces/${encodeURIComponent(spaceId)}`, options);
  }

  /** Newest first; `before` takes the `nextCursor` of the page before. */
  list(query: { before?: string; limit?: number } = {}, options: CallOptions = {}): Promise<SpaceList> {
    return this.#connection.json('/v1/spaces', { ...options, query });
  }

  /** Says something. Its agent answers, unless `respond` is false. Safe to be cut: it is said once. */
  post(
    spaceId: string,
    message: PostMessage | string,
    options: CallOptions & { idempotencyKey?: string } = {},
  ): Promise<Posted> {
    const body = typeof message === 'string' ? { message } : message;
    return this.#connection.json(
      `/v1/spaces/${encodeURIComponent(spaceId)}/messages`,
      postOnce(body, options),
    );
  }

  /** Its runs, newest first. */
  runs(spaceId: string, query: Omit<RunQuery, 'space'> = {}, options: CallOptions = {}): Promise<RunList> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/runs`;
    return this.#connection.json(path, { ...options, query: { ...query } });
  }

  /** Its events, without end: everything that happens in it and is yours to see. */
  subscribe(spaceId: string, options: SubscribeOptions = {}): EventStream {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/events`;
    return new EventStream(this.#connection, { ...options, path });
  }
}

/** Configurations; for backends only. */
export class Agents {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Writes an agent; a change is a new revision, the same again is not. */
  put(name: string, config: Record<string, unknown>, options: CallOptions = {}): Promise<Agent> {
    return this.#connection.json(this.#path(name), { ...options, method: 'PUT', body: config, safe: true });
  }

  get(name: string, options: CallOptions = {}): Promise<Agent> {
    return this.#connection.json(this.#path(name), options);
  }

  async list(options: CallOptions = {}): Promise<Agent[]> {
    return (await this.#connection.json<AgentList>('/v1/agents', options)).agents;
  }

  remove(name: string, options: CallOptions = {}): Promise<void> {
    return this.#connection.json(this.#path(name), { ...options, method: 'DELETE' });
  }

  #path(name: string): string {
    return `/v1/agents/${encodeURIComponent(name)}`;
  }
}

/** Questions to people. */
export class Approvals {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Says yes, yes with another input, or no. The same again gets the same receipt; another one is a `ConflictError`. */
  decide(approvalId: string, decision: ApprovalDecision, options: CallOptions = {}): Promise<Decided> {
    const path = `/v1/approvals/${encodeURIComponent(approvalId)}`;
    return this.#connection.json(path, { ...options, method: 'POST', body: decision, safe: true });
  }
}

function postOnce(body: unknown, options: CallOptions & { idempotencyKey?: string }): RequestOptions {
  const { idempotencyKey = freshKey(), signal } = options;
  return {
    method: 'POST',
    body,
    headers: { 'idempotency-key': idempotencyKey },
    safe: true,
    ...(signal ? { signal } : {}),
  };
}
