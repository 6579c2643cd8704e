import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { ClientToolDefinition } from './tool.js';
import type { ServeOptions, ToolServer } from './tool-server.js';
import type { Claimed, Receipt, Tool, ToolDefinitions, ToolList, Validated } from './wire.js';

/** What a call gave, in the gateway's words. */
export type ToolOutcome =
  | { result: unknown }
  | { error: string | { message: string; code?: string; name?: string } };

/** A result by its space. */
export type SpaceResult = ToolOutcome & {
  toolCallId: string;
  runId?: string;
  source?: string;
  clientId?: string;
};

/** A result by its run; `callId` and `toolCallId` mean the same. */
export type RunResult = ToolOutcome & {
  callId?: string;
  toolCallId?: string;
  source?: string;
  clientId?: string;
};

/** Which tools to find; what is left out does not matter. */
export interface ToolQuery {
  agent?: string;
  /** Words in a row in one of its triggers; case and accents do not matter. */
  trigger?: string;
  category?: string;
  /** For backends only. */
  permission?: string;
}

/** Whose words for tools. */
export type ToolFormat = 'openai' | 'anthropic' | 'google';

/** Calls of tools that run on clients, and what is known of tools. */
export class Tools {
  readonly #connection: Connection;
  readonly #holder: string;
  readonly #serve: (spaceId: string, options: ServeOptions) => ToolServer;

  constructor(
    connection: Connection,
    holder: string,
    serve: (spaceId: string, options: ServeOptions) => ToolServer,
  ) {
    this.#connection = connection;
    this.#holder = holder;
    this.#serve = serve;
  }

  /** Hands in what a call gave. The receipt means: it is on disk. The same again gets the same receipt. */
  submitResult(spaceId: string, result: SpaceResult, options: CallOptions = {}): Promise<Receipt> {
    return this.#post(`/v1/spaces/${encodeURIComponent(spaceId)}/tool-results`, result, options);
  }

  /** The same by run. */
  submitRunResult(runId: string, result: RunResult, options: CallOptions = {}): Promise<Receipt> {
    return this.#post(`/v1/runs/${encodeURIComponent(runId)}/tool-results`, result, options);
  }

  /**
   * Takes a call, so that nobody else executes it; again to keep it. A `ConflictError` with code `HELD` says who
   * has it; a `GoneError` that it is settled.
   */
  claim(
    callId: string,
    { holder = this.#holder, leaseSeconds, ...options }: ClaimOptions = {},
  ): Promise<Claimed> {
    const body = leaseSeconds === undefined ? { holder } : { holder, leaseSeconds };
    return this.#post(`/v1/calls/${encodeURIComponent(callId)}/claim`, body, options);
  }

  /** Gives a call back: it is offered again. */
  async release(callId: string, { holder = this.#holder, ...options }: ReleaseOptions = {}): Promise<void> {
    const path = `/v1/calls/${encodeURIComponent(callId)}/release`;
    // A tab that is closed or reloaded gives its calls back on its way out.
    await this.#connection.json(path, {
      ...options,
      method: 'POST',
      body: { holder },
      safe: true,
      keepalive: true,
    });
  }

  /** Says how far a call is: any JSON. */
  async progress(callId: string, progress: unknown, options: CallOptions = {}): Promise<void> {
    await this.#post(`/v1/calls/${encodeURIComponent(callId)}/progress`, { progress }, options);
  }

  /** The tools of the project's agents that fit all of the query. */
  async list(query: ToolQuery = {}, options: CallOptions = {}): Promise<Tool[]> {
    return (await this.#connection.json<ToolList>('/v1/tools', { ...options, query: { ...query } })).tools;
  }

  /** The same, exactly as models of this vendor are told of them; for backends only. */
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

  /** What the gateway has to say about definitions, all of it at once. */
  validate(tools: ClientToolDefinition[], options: CallOptions = {}): Promise<Validated> {
    return this.#post('/v1/tools/validate', { tools }, options);
  }

  /**
   * Executes the calls of a space, also those that wait already: claims each, keeps the claim, runs the tool,
   * hands in the result. Several servers of one space share the work.
   */
  serve(spaceId: string, options: ServeOptions = {}): ToolServer {
    return this.#serve(spaceId, options);
  }

  #post<T>(path: string, body: unknown, options: CallOptions): Promise<T> {
    // All of these may be sent twice: the intake contract, or they only read.
    return this.#connection.json(path, { ...options, method: 'POST', body, safe: true });
  }
}

/** What `claim` takes. */
export interface ClaimOptions extends CallOptions {
  /** A name for whoever executes; the client's own unless said otherwise. */
  holder?: string;
  /** How long the claim holds without another word, in seconds; 30. */
  leaseSeconds?: number;
}

/** What `release` takes. */
export interface ReleaseOptions extends CallOptions {
  holder?: string;
}
