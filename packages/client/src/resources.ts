import type { ApprovalDecision, QuestionAnswer } from './chunk.js';
import type { Connection, RequestOptions } from './connection.js';
import { EventStream, type SubscribeOptions } from './event-stream.js';
import { freshKey } from './fresh-key.js';
import type {
  Agent,
  AgentList,
  AnsweredQuestion,
  CreateSpace,
  Decided,
  Posted,
  PostMessage,
  QuestionList,
  Run,
  RunList,
  RunStopped,
  Space,
  SpaceList,
  StartRun,
  Status,
} from './wire.js';

/** Options of every request. */
export interface CallOptions {
  signal?: AbortSignal;
}

/** The runs API. */
export class Runs {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Starts a run and returns its ids; `chatStream` does this and follows the run. Safe to retry: the
   * idempotency key starts it once.
   */
  start(run: StartRun | string, options: CallOptions & { idempotencyKey?: string } = {}): Promise<Posted> {
    const body = typeof run === 'string' ? { message: run } : run;
    return this.#connection.json('/v1/runs', postOnce(body, options));
  }

  /** A run's current state: status, open calls and approvals, last text. */
  get(runId: string, options: CallOptions = {}): Promise<Run> {
    return this.#connection.json(`/v1/runs/${encodeURIComponent(runId)}`, options);
  }

  /** Runs, newest first; `before` is the `nextCursor` of the previous page. */
  list(query: RunQuery = {}, options: CallOptions = {}): Promise<RunList> {
    return this.#connection.json('/v1/runs', { ...options, query: { ...query } });
  }

  /** Cancels a run and its child runs. */
  cancel(runId: string, options: CallOptions = {}): Promise<RunStopped> {
    const path = `/v1/runs/${encodeURIComponent(runId)}/cancel`;
    return this.#connection.json(path, { ...options, method: 'POST', safe: true });
  }

  /** The run's events until it ends. */
  subscribe(runId: string, options: SubscribeOptions = {}): EventStream {
    return new EventStream(this.#connection, {
      ...options,
      path: `/v1/runs/${encodeURIComponent(runId)}/events`,
    });
  }
}

/** A filter of runs. */
export interface RunQuery {
  space?: string;
  status?: Status;
  parent?: string;
  before?: string;
  limit?: number;
}

/** The spaces API: shared conversations. */
export class Spaces {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Creates a space. */
  create(space: CreateSpace = {}, options: CallOptions = {}): Promise<Space> {
    return this.#connection.json('/v1/spaces', { ...options, method: 'POST', body: space });
  }

  get(spaceId: string, options: CallOptions = {}): Promise<Space> {
    return this.#connection.json(`/v1/spaces/${encodeURIComponent(spaceId)}`, options);
  }

  /** Spaces, newest first; `before` is the `nextCursor` of the previous page. */
  list(query: { before?: string; limit?: number } = {}, options: CallOptions = {}): Promise<SpaceList> {
    return this.#connection.json('/v1/spaces', { ...options, query });
  }

  /**
   * Posts a message. The space's agent answers, unless `respond` is false. Safe to retry: the idempotency key
   * posts it once.
   */
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

  /** The space's runs, newest first. */
  runs(spaceId: string, query: Omit<RunQuery, 'space'> = {}, options: CallOptions = {}): Promise<RunList> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/runs`;
    return this.#connection.json(path, { ...options, query: { ...query } });
  }

  /** The space's events, without end, redacted for the caller. */
  subscribe(spaceId: string, options: SubscribeOptions = {}): EventStream {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/events`;
    return new EventStream(this.#connection, { ...options, path });
  }
}

/** Agent configurations; needs a secret key. */
export class Agents {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Stores an agent; a change creates a revision, storing the same one again does not. */
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

/** The approvals API. */
export class Approvals {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Approves a call, approves it with an edited input, or rejects it. The same decision again gets the same
   * receipt; a different one is a `ConflictError`.
   */
  decide(approvalId: string, decision: ApprovalDecision, options: CallOptions = {}): Promise<Decided> {
    const path = `/v1/approvals/${encodeURIComponent(approvalId)}`;
    return this.#connection.json(path, { ...options, method: 'POST', body: decision, safe: true });
  }
}

/** The API for questions that tools ask in the middle of a call. */
export class Questions {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** A page of the questions that nobody has answered, newest run first. */
  list(
    options: CallOptions & { space?: string; agent?: string; before?: string; limit?: number } = {},
  ): Promise<QuestionList> {
    const { signal, ...filter } = options;
    const query = new URLSearchParams({ status: 'open' });
    for (const [name, value] of Object.entries(filter))
      if (value !== undefined) query.set(name, String(value));
    return this.#connection.json(`/v1/questions?${query}`, signal ? { signal } : {});
  }

  /**
   * Answers a question. The call goes on when all its questions are answered. The same answer again gets the
   * same receipt; a different one is a `ConflictError`.
   */
  answer(questionId: string, answer: QuestionAnswer, options: CallOptions = {}): Promise<AnsweredQuestion> {
    const path = `/v1/questions/${encodeURIComponent(questionId)}`;
    return this.#connection.json(path, { ...options, method: 'POST', body: answer, safe: true });
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
