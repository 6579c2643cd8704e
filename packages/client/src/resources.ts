import type { ApprovalDecision, QuestionAnswer } from './chunk.js';
import type { Connection, RequestOptions } from './connection.js';
import { GoneError } from './error.js';
import { EventStream, type SubscribeOptions } from './event-stream.js';
import { freshKey } from './fresh-key.js';
import type { RevisionList, RunRows, RunTree } from './operator-wire.js';
import { RtcChannel, type RtcOptions } from './rtc-channel.js';
import { RunWatch, type WatchOptions } from './run-watch.js';
import type {
  Agent,
  AgentList,
  AnsweredQuestion,
  ApprovalList,
  CreateSpace,
  Decided,
  DeletionReport,
  Event,
  EventPage,
  Member,
  Posted,
  PostMessage,
  PutMember,
  QuestionList,
  Run,
  RunStopped,
  Space,
  SpaceList,
  StartRun,
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
  list(query: RunQuery = {}, options: CallOptions = {}): Promise<RunRows> {
    return this.#connection.json('/v1/runs', { ...options, query: { ...query } });
  }

  /** A run and all its child runs, at any depth: the root first, then by creation. */
  tree(runId: string, options: CallOptions = {}): Promise<RunTree> {
    return this.#connection.json(`/v1/runs/${encodeURIComponent(runId)}/tree`, options);
  }

  /** A page of a run's stored events, oldest first; `after` is the `nextCursor` of the previous page. */
  events(runId: string, query: EventQuery = {}, options: CallOptions = {}): Promise<EventPage> {
    const path = `/v1/runs/${encodeURIComponent(runId)}/events`;
    return this.#connection.json(path, { ...options, query: { ...query } });
  }

  /** Follows all runs of the project: rows that are created or change. Needs a secret key or a session. */
  watch(options: WatchOptions): RunWatch {
    return new RunWatch(this.#connection, options);
  }

  /** Cancels a run and its child runs. */
  cancel(runId: string, options: CallOptions = {}): Promise<RunStopped> {
    const path = `/v1/runs/${encodeURIComponent(runId)}/cancel`;
    return this.#connection.json(path, { ...options, method: 'POST', safe: true });
  }

  /**
   * Deletes a run and its child runs for good. All of them must have ended: otherwise a `ConflictError` (`RUN_OPEN`).
   * Deleting it again changes nothing. Needs a secret key or a session.
   */
  delete(runId: string, options: CallOptions = {}): Promise<DeletionReport> {
    const path = `/v1/runs/${encodeURIComponent(runId)}`;
    return this.#connection.json(path, { ...options, method: 'DELETE', safe: true });
  }

  /** The run's events until it ends. */
  subscribe(runId: string, options: SubscribeOptions = {}): EventStream {
    return new EventStream(this.#connection, {
      ...options,
      path: `/v1/runs/${encodeURIComponent(runId)}/events`,
    });
  }
}

/** A filter of runs; all given members must match. Those from `agent` to `top` need a secret key or a session. */
export interface RunQuery {
  space?: string;
  /** A status, or several separated by commas. */
  status?: string;
  parent?: string;
  before?: string;
  limit?: number;
  agent?: string;
  /** Id or subject of the user that the run is for. */
  user?: string;
  /** Created at this time or later (RFC 3339). */
  since?: string;
  /** Created before this time (RFC 3339). */
  until?: string;
  /** A part of the first message. */
  text?: string;
  /** Runs that are one call of this tool. */
  tool?: string;
  /** All runs of the tree below this run. */
  root?: string;
  /** Only runs that no call has started. */
  top?: boolean;
}

/** Which of a run's events to read. */
export interface EventQuery {
  after?: number;
  limit?: number;
  /** As a user sees them; needs a secret key or a session. */
  view?: 'public';
  /** With `view`: the user; the run's own by default. */
  user?: string;
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

  /**
   * Deletes a space for good: its runs are cancelled, its streams end, and log, files and records are removed. Deleting it
   * again changes nothing. Needs a secret key or a session.
   */
  delete(spaceId: string, options: CallOptions = {}): Promise<DeletionReport> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}`;
    return this.#connection.json(path, { ...options, method: 'DELETE', safe: true });
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

  /** A member, with its role and permissions; the entity by its id or its subject. Needs a secret key or a session. */
  member(spaceId: string, entity: string, options: CallOptions = {}): Promise<Member> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/members/${encodeURIComponent(entity)}`;
    return this.#connection.json(path, options);
  }

  /** Adds a member, or changes its role and permissions; the entity by its id or its subject. */
  putMember(
    spaceId: string,
    entity: string,
    member: PutMember = {},
    options: CallOptions = {},
  ): Promise<void> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/members/${encodeURIComponent(entity)}`;
    return this.#connection.json(path, { ...options, method: 'PUT', body: member, safe: true });
  }

  /** Removes a member. Its open streams end. */
  removeMember(spaceId: string, entity: string, options: CallOptions = {}): Promise<void> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/members/${encodeURIComponent(entity)}`;
    return this.#connection.json(path, { ...options, method: 'DELETE', safe: true });
  }

  /** The space's runs, newest first. */
  runs(spaceId: string, query: Omit<RunQuery, 'space'> = {}, options: CallOptions = {}): Promise<RunRows> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/runs`;
    return this.#connection.json(path, { ...options, query: { ...query } });
  }

  /** A page of the space's stored events, oldest first; `after` is the `nextCursor` of the previous page. */
  events(
    spaceId: string,
    query: { after?: number; limit?: number } = {},
    options: CallOptions = {},
  ): Promise<EventPage> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/events`;
    return this.#connection.json(path, { ...options, query });
  }

  /**
   * The space's stored events, oldest first, from a cursor to the end of the log as it is now, page by page. What was deleted is
   * passed over.
   */
  async *stored(
    spaceId: string,
    { after = 0 }: { after?: number } = {},
    options: CallOptions = {},
  ): AsyncGenerator<Event, void, void> {
    let cursor: number | null | undefined = after;
    while (cursor !== null && cursor !== undefined) {
      const query = { after: cursor, limit: PAGE_EVENTS };
      const page: EventPage = await this.events(spaceId, query, options).catch(keptAfter(cursor));
      yield* page.events;
      cursor = page.nextCursor;
    }
  }

  /** The space's events, without end, redacted for the caller. */
  subscribe(spaceId: string, options: SubscribeOptions = {}): EventStream {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/events`;
    return new EventStream(this.#connection, { ...options, path });
  }

  /**
   * Opens a WebRTC data channel: the space's tool events, redacted for the caller, and decisions, claims and results the
   * other way. For browsers; anything else needs an `RTCPeerConnection` of its own as a global.
   */
  connectRtc(spaceId: string, options: RtcOptions = {}): RtcChannel {
    return new RtcChannel(this.#connection, spaceId, options);
  }
}

/** Events in a page, the most that the gateway gives. */
const PAGE_EVENTS = 500;

/** Where some events after the cursor were deleted, the place from which on all are kept is the next. Throws other errors. */
function keptAfter(cursor: number): (error: unknown) => EventPage {
  return (error) => {
    const snapshot = error instanceof GoneError ? error.problem?.snapshot : undefined;
    const { deletedUpTo } = (snapshot ?? {}) as { deletedUpTo?: number };
    if (deletedUpTo === undefined || deletedUpTo <= cursor) throw error;
    return { events: [], nextCursor: deletedUpTo };
  };
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

  /** The revisions of an agent, newest first. */
  revisions(
    name: string,
    query: { before?: number; limit?: number } = {},
    options: CallOptions = {},
  ): Promise<RevisionList> {
    return this.#connection.json(`${this.#path(name)}/revisions`, { ...options, query });
  }

  /** One revision of an agent, also of one that was removed. */
  revision(name: string, revision: number, options: CallOptions = {}): Promise<Agent> {
    return this.#connection.json(`${this.#path(name)}/revisions/${revision}`, options);
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

  /** A page of the approvals that nobody has decided on, newest run first. */
  list(
    query: { space?: string; agent?: string; before?: string; limit?: number } = {},
    options: CallOptions = {},
  ): Promise<ApprovalList> {
    return this.#connection.json('/v1/approvals', { ...options, query: { status: 'open', ...query } });
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
