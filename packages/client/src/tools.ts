import { callHandler } from './call-handler.js';
import type { CallerContext, CallerContexts } from './caller-contexts.js';
import type { Connection } from './connection.js';
import { isFinal } from './final-status.js';
import { freshKey } from './fresh-key.js';
import type { CallOptions } from './resources.js';
import type { ClientToolDefinition } from './tool.js';
import type { ServeOptions, ToolServer } from './tool-server.js';
import type {
  CallTool,
  Claimed,
  MatchTools,
  Receipt,
  SaidTool,
  SayTool,
  Tool,
  ToolDefinitions,
  ToolList,
  ToolMatch,
  ToolMatches,
  ToolUsage,
  Validated,
  ToolCall as WireToolCall,
} from './wire.js';
import { wireDefinition } from './wire-definition.js';

/** The outcome of a call, as it is posted. */
export type ToolOutcome =
  | { result: unknown }
  | { error: string | { message: string; code?: string; name?: string } };

/** A result posted to a space. */
export type SpaceResult = ToolOutcome & {
  toolCallId: string;
  runId?: string;
  source?: string;
  clientId?: string;
};

/** A result posted to a run; `callId` and `toolCallId` mean the same. */
export type RunResult = ToolOutcome & {
  callId?: string;
  toolCallId?: string;
  source?: string;
  clientId?: string;
};

/** A filter of tools; all given members must match. */
export interface ToolQuery {
  agent?: string;
  /** Words in sequence in one of its triggers; case and accents are ignored. */
  trigger?: string;
  category?: string;
  /** Needs a secret key. */
  permission?: string;
}

/** The vendor whose format to use. */
export type ToolFormat = 'openai' | 'anthropic' | 'google';

/** Calls of client tools, and tool definitions. */
export class Tools {
  readonly #connection: Connection;
  readonly #holder: string;
  readonly #contexts: CallerContexts;
  readonly #serve: (spaceId: string, options: ServeOptions) => ToolServer;

  constructor(
    connection: Connection,
    holder: string,
    contexts: CallerContexts,
    serve: (spaceId: string, options: ServeOptions) => ToolServer,
  ) {
    this.#connection = connection;
    this.#holder = holder;
    this.#contexts = contexts;
    this.#serve = serve;
  }

  /**
   * Posts the result of a call. The receipt means that it is on disk. The same result again gets the same
   * receipt.
   */
  submitResult(spaceId: string, result: SpaceResult, options: CallOptions = {}): Promise<Receipt> {
    return this.#post(`/v1/spaces/${encodeURIComponent(spaceId)}/tool-results`, result, options);
  }

  /** Like `submitResult`, by run. */
  submitRunResult(runId: string, result: RunResult, options: CallOptions = {}): Promise<Receipt> {
    return this.#post(`/v1/runs/${encodeURIComponent(runId)}/tool-results`, result, options);
  }

  /**
   * Claims a call, so that no other client executes it; claim again to renew the lease. A `ConflictError`
   * with code `HELD` names the holder; a `GoneError` means that the call has ended.
   */
  claim(
    callId: string,
    { holder = this.#holder, leaseSeconds, ...options }: ClaimOptions = {},
  ): Promise<Claimed> {
    const body = leaseSeconds === undefined ? { holder } : { holder, leaseSeconds };
    return this.#post(`/v1/calls/${encodeURIComponent(callId)}/claim`, body, options);
  }

  /** Releases a call: it is open to other clients again. */
  async release(callId: string, { holder = this.#holder, ...options }: ReleaseOptions = {}): Promise<void> {
    const path = `/v1/calls/${encodeURIComponent(callId)}/release`;
    // `keepalive`, so that a tab which is closed or reloaded still releases its calls.
    await this.#connection.json(path, {
      ...options,
      method: 'POST',
      body: { holder },
      safe: true,
      keepalive: true,
    });
  }

  /** Reports progress of a call: any JSON. */
  async progress(callId: string, progress: unknown, options: CallOptions = {}): Promise<void> {
    await this.#post(`/v1/calls/${encodeURIComponent(callId)}/progress`, { progress }, options);
  }

  /** The tools of the project's agents that match the query. */
  async list(query: ToolQuery = {}, options: CallOptions = {}): Promise<Tool[]> {
    return (await this.#connection.json<ToolList>('/v1/tools', { ...options, query: { ...query } })).tools;
  }

  /** The tools in a vendor's format, exactly as they are sent to its models; needs a secret key. */
  async definitions(
    format: ToolFormat,
    query: ToolQuery = {},
    options: CallOptions = {},
  ): Promise<unknown[]> {
    const found = this.#connection.json<ToolDefinitions>('/v1/tools', {
      ...options,
      query: { ...query, format },
    });
    return (await found).tools;
  }

  /**
   * Ranks the tools that the caller may use by trigger for what somebody said, best first, and explains each match. Works on
   * text: no microphone is needed.
   */
  async match(
    text: string,
    match: Omit<MatchTools, 'text'> = {},
    options: CallOptions = {},
  ): Promise<ToolMatch[]> {
    return (await this.#post<ToolMatches>('/v1/tools/match', { ...match, text }, options)).matches;
  }

  /** The text that a tool has said aloud, with the values of its variables. */
  voice(name: string, say: SayTool, options: CallOptions = {}): Promise<SaidTool> {
    return this.#post(`/v1/tools/${encodeURIComponent(name)}/voice`, say, options);
  }

  /** Validates definitions, and returns all problems at once. */
  validate(tools: ClientToolDefinition[], options: CallOptions = {}): Promise<Validated> {
    return this.#post('/v1/tools/validate', { tools: tools.map(wireDefinition) }, options);
  }

  /**
   * Calls a tool, without a model. Waits up to `waitSeconds` for the outcome (10 by default); a call that takes
   * longer, or waits for somebody, is returned as it stands. With the `idempotencyKey` of an earlier call that call is found
   * again, and waited for.
   */
  async call(
    name: string,
    call: CallTool = {},
    { waitSeconds = 10, idempotencyKey = freshKey(), context, onBegun, ...options }: CallToolOptions = {},
  ): Promise<WireToolCall> {
    const post = (seconds: number): Promise<WireToolCall> =>
      this.#connection.json(`/v1/tools/${encodeURIComponent(name)}/call`, {
        ...options,
        method: 'POST',
        body: call,
        headers: { prefer: `wait=${seconds}`, 'idempotency-key': idempotencyKey },
        safe: true,
      });
    if (context === undefined && onBegun === undefined) return post(waitSeconds);
    // The id is needed before the outcome: a handler that executes the call asks for its context by it.
    const begun = await this.#contexts.begin(name, () => post(0), context ?? {});
    callHandler(onBegun && (() => onBegun(begun)));
    const called = isFinal(begun.status) ? begun : await post(waitSeconds);
    if (isFinal(called.status)) this.#contexts.forget(called.toolCallId);
    return called;
  }

  /** How often a tool was called, how often that failed, and how long it took; needs a secret key. */
  usage(name: string, { since, ...options }: CallOptions & { since?: string } = {}): Promise<ToolUsage> {
    return this.#connection.json(`/v1/tools/${encodeURIComponent(name)}/usage`, {
      ...options,
      query: { since },
    });
  }

  /**
   * Executes the calls of a space, including those already open: claims each, renews the lease, executes the
   * tool, posts the result. Several servers of one space share the work.
   */
  serve(spaceId: string, options: ServeOptions = {}): ToolServer {
    return this.#serve(spaceId, options);
  }

  #post<T>(path: string, body: unknown, options: CallOptions): Promise<T> {
    // All of these are safe to repeat: by the contract for results, or because they only read.
    return this.#connection.json(path, { ...options, method: 'POST', body, safe: true });
  }
}

/** Options of `call`. */
export interface CallToolOptions extends CallOptions {
  /** How long to wait for the outcome, in seconds; 10 by default. */
  waitSeconds?: number;
  /** Names the call: with the same key it is made once. */
  idempotencyKey?: string;
  /** Told to the handler, if this client executes the call. */
  context?: CallerContext;
  /** Called with the call's ids, before its outcome is waited for. */
  onBegun?: (call: WireToolCall) => void;
}

/** Options of `claim`. */
export interface ClaimOptions extends CallOptions {
  /** The name that holds the lease; the client's own by default. */
  holder?: string;
  /** Lease in seconds; 30 by default. */
  leaseSeconds?: number;
}

/** Options of `release`. */
export interface ReleaseOptions extends CallOptions {
  holder?: string;
}
