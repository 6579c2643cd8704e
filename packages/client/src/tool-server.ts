import { pause, retryDelay } from './back-off.js';
import { CallEnded, CallRunner } from './call-runner.js';
import type { CallerContexts } from './caller-contexts.js';
import type { ToolEnd } from './chunk.js';
import type { Connection } from './connection.js';
import { AbortedError } from './error.js';
import { follow, isPassing } from './event-stream.js';
import { isFinal } from './final-status.js';
import { freshKey } from './fresh-key.js';
import type { PluginRegistry } from './plugin-registry.js';
import type { Runs, Spaces } from './resources.js';
import { readTimeout } from './timeout.js';
import type { ToolCall, ToolContext, ToolExecutor } from './tool.js';
import { readToolCall } from './tool-call.js';
import type { Tools } from './tools.js';
import type { Event } from './wire.js';

const CONCURRENCY = 16;
/** Runs that are searched for open calls, newest first. */
const RUNS_MAX = 100;

/** Options of `tools.serve`. */
export interface ServeOptions {
  /**
   * Executors by tool name, in addition to the tools of the client's plugins. A `timeout` is milliseconds, or a string with
   * its unit such as `30s`.
   */
  tools?: Record<string, ToolExecutor<never> | { execute: ToolExecutor<never>; timeout?: number | string }>;
  /** Serve only tools of these names. */
  only?: string[];
  /** The name that holds the leases; by default the client's own with a random suffix. */
  holder?: string;
  /** Lease of a call in seconds: how long it stays claimed if this process dies; 30 by default. */
  leaseSeconds?: number;
  /** Most calls executed at once; 16 by default. */
  concurrency?: number;
  /**
   * Called when the server listens, when the gateway does not answer, and when it answers again. By default a warning on
   * the console says that the server waits.
   */
  onConnection?: (connection: ServeConnection) => void;
  /** Closes the server. */
  signal?: AbortSignal;
}

/** Whether a tool server reaches the gateway. While it does not, it tries again. */
export type ServeConnection = { status: 'up' } | { status: 'lost'; reason: string };

/** What a server needs of its client. */
export interface ServeHost {
  connection: Connection;
  registry: PluginRegistry;
  tools: Tools;
  contexts: CallerContexts;
  runs: Runs;
  spaces: Spaces;
  clientId: string;
  ready(): Promise<void>;
  log(line: string): void;
  onToolStart(call: ToolCall): void;
  onToolEnd(end: ToolEnd): void;
}

interface ToolHandler {
  execute: ToolExecutor;
  timeoutMs?: number;
}

/** Executes the client tool calls of a space until it is closed. */
export class ToolServer {
  /** The name that holds the leases. */
  readonly holder: string;
  /** Resolves when the server has ended; rejects with the error that ended it, unless that was `close`. */
  readonly done: Promise<void>;
  readonly #host: ServeHost;
  readonly #spaceId: string;
  readonly #options: ServeOptions;
  readonly #handlers: Map<string, ToolHandler>;
  readonly #runner: CallRunner;
  readonly #stop = new AbortController();
  readonly #ready: Promise<void>;
  #opened: () => void = () => {};
  /** Calls that are executing here, each with its abort controller. */
  readonly #running = new Map<string, { stop: AbortController; ended: Promise<void>; released: boolean }>();
  /**
   * Open calls that are not claimed here yet: another client holds them, or the concurrency limit is reached.
   */
  readonly #waiting = new Map<string, { call: ToolCall; held: boolean }>();
  #idle: Array<() => void> = [];
  #connection: ServeConnection['status'] | undefined;

  constructor(host: ServeHost, spaceId: string, options: ServeOptions) {
    this.#host = host;
    this.#spaceId = spaceId;
    this.#options = options;
    this.holder = options.holder ?? `${host.clientId}-${freshKey().slice(0, 8)}`;
    this.#runner = new CallRunner(host, host.log);
    this.#handlers = new Map(
      Object.entries(options.tools ?? {}).map(([name, tool]) => [name, handlerOf(name, tool)]),
    );
    const opened = new Promise<void>((resolve) => {
      this.#opened = resolve;
    });
    this.done = this.#serve();
    this.#ready = Promise.race([opened, this.done]);
    // Handled here, so that a caller who does not await `done` gets no unhandled rejection.
    this.done.catch(() => {});
    this.#ready.catch(() => {});
    const { signal } = options;
    if (signal?.aborted) this.#stop.abort();
    signal?.addEventListener('abort', () => this.#stop.abort(), { once: true, signal: this.#stop.signal });
  }

  /** Resolves when the server listens: calls from now on are seen. Rejects if it cannot. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** Resolves when no call is executing. */
  async idle(): Promise<void> {
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Claims no more calls, releases its leases, and resolves when everything has stopped. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.done.catch(() => {});
  }

  async #serve(): Promise<void> {
    try {
      await this.#host.ready();
      const after = await this.#startWhenAnswered();
      const events = follow(this.#host.connection, {
        path: `/v1/spaces/${encodeURIComponent(this.#spaceId)}/events`,
        signal: this.#stop.signal,
        onOpen: () => {
          this.#report({ status: 'up' });
          this.#opened();
        },
        onRefused: (error) => this.#report(lost(error)),
        ...(after === undefined ? {} : { after }),
      });
      for await (const event of events) this.#see(event);
    } catch (error) {
      if (!(error instanceof AbortedError)) throw error;
    } finally {
      this.#stop.abort();
      await Promise.all([...this.#running.values()].map(({ ended }) => ended));
    }
  }

  /** Starts the calls that are already open as soon as the gateway answers, however long that takes. */
  async #startWhenAnswered(): Promise<number | undefined> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#startOpenCalls();
      } catch (error) {
        if (this.#stop.signal.aborted || !isPassing(error)) throw error;
        this.#report(lost(error));
        await pause(retryDelay(failures), this.#stop.signal);
      }
    }
  }

  #report(connection: ServeConnection): void {
    const { status } = connection;
    if (status === this.#connection) return;
    const { onConnection } = this.#options;
    if (onConnection) onConnection(connection);
    else if (status === 'lost') console.warn(`[toolgate] waiting for the gateway: ${connection.reason}`);
    else if (this.#connection === 'lost') console.warn('[toolgate] the gateway answers again');
    this.#connection = status;
  }

  /**
   * Starts the calls that are already open, and returns the cursor to follow from. A call that is seen twice
   * is executed once.
   */
  async #startOpenCalls(): Promise<number | undefined> {
    const options = { signal: this.#stop.signal };
    const { runs } = await this.#host.spaces.runs(this.#spaceId, { limit: RUNS_MAX }, options);
    for (const { id, status } of runs) {
      if (isFinal(status)) continue;
      const { pending, spaceId } = await this.#host.runs.get(id, options);
      for (const { toolCallId, toolName, givenName, input, deadline } of pending.calls) {
        const named = { toolCallId, toolName, givenName };
        this.#offer(readToolCall({ ...named, input, runId: id, spaceId, ...(deadline ? { deadline } : {}) }));
      }
    }
    return runs.length === 0 ? undefined : Math.max(...runs.map(({ seq }) => seq));
  }

  #see(event: Event): void {
    switch (event.type) {
      case 'tool-input-available':
        // A call without a deadline is not open: it was rejected, or waits for approval.
        if (event.placement === 'client' && event.deadline !== undefined)
          this.#offer(readToolCall(event), event.reserved);
        break;
      case 'tool-approval-response':
        if (event.placement === 'client' && event.approved)
          this.#offerApproved(event.toolCallId, event.runId);
        break;
      case 'tool-released': {
        const waiting = this.#waiting.get(event.toolCallId);
        if (waiting) waiting.held = false;
        const running = this.#running.get(event.toolCallId);
        if (running) running.released = true;
        this.#fill();
        break;
      }
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        this.#waiting.delete(event.toolCallId);
        this.#running.get(event.toolCallId)?.stop.abort(new CallEnded());
        break;
      default:
        break;
    }
  }

  /** The event has an input only if it was edited; the run always has it. */
  async #offerApproved(callId: string, runId: string | undefined): Promise<void> {
    if (runId === undefined) return;
    try {
      const { pending, spaceId } = await this.#host.runs.get(runId, { signal: this.#stop.signal });
      const call = pending.calls.find(({ toolCallId }) => toolCallId === callId);
      if (call) this.#offer(readToolCall({ ...call, deadline: call.deadline ?? undefined, runId, spaceId }));
    } catch (error) {
      this.#host.log(
        `call ${callId} was approved, but its input could not be read: ${(error as Error).message}`,
      );
    }
  }

  /** A call that is reserved for another client waits until it is released. */
  #offer(call: ToolCall, reserved?: { holder: string }): void {
    if (this.#running.has(call.toolCallId) || !this.#handles(call.toolName)) return;
    const held = reserved !== undefined && reserved.holder !== this.holder;
    this.#waiting.set(call.toolCallId, { call, held });
    this.#fill();
  }

  #handles(toolName: string): boolean {
    const { only } = this.#options;
    if (only && !only.includes(toolName)) return false;
    return this.#handlers.has(toolName) || this.#host.registry.handles(toolName);
  }

  #fill(): void {
    const { concurrency = CONCURRENCY } = this.#options;
    for (const [callId, { call, held }] of this.#waiting) {
      if (this.#running.size >= concurrency || this.#stop.signal.aborted) return;
      if (held) continue;
      this.#waiting.delete(callId);
      const stop = new AbortController();
      const ended = this.#run(call, AbortSignal.any([stop.signal, this.#stop.signal])).finally(() => {
        this.#running.delete(callId);
        this.#fill();
        if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
      });
      this.#running.set(callId, { stop, ended, released: false });
    }
  }

  async #run(call: ToolCall, signal: AbortSignal): Promise<void> {
    const handler = this.#handlers.get(call.toolName);
    const { leaseSeconds } = this.#options;
    const timeoutMs = handler?.timeoutMs ?? this.#host.registry.timeoutOf(call.toolName);
    const execute = async (given: ToolCall, context: ToolContext) => {
      const known = { ...(await this.#host.contexts.of(given.toolName, given.toolCallId)), ...context };
      return handler ? handler.execute(given.args, known) : this.#host.registry.execute(given, known);
    };
    try {
      const fate = await this.#runner.run({
        call,
        holder: this.holder,
        signal,
        execute,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
        onStart: (started) => this.#host.onToolStart(started),
        onEnd: (end) => this.#host.onToolEnd(end),
      });
      if (fate !== 'held') return;
      // The call was released while the claim was under way: then that answer is outdated.
      const released = this.#running.get(call.toolCallId)?.released ?? false;
      this.#waiting.set(call.toolCallId, { call, held: !released });
    } catch (error) {
      // The call stays open: for another server, or until its deadline.
      if (!(error instanceof AbortedError))
        this.#host.log(`call ${call.toolCallId}: ${(error as Error).message}`);
    }
  }
}

/** Throws a `PluginError` for a timeout that is none. */
function handlerOf(name: string, tool: NonNullable<ServeOptions['tools']>[string]): ToolHandler {
  if (typeof tool === 'function') return { execute: tool as ToolExecutor };
  const execute = tool.execute as ToolExecutor;
  if (tool.timeout === undefined) return { execute };
  return { execute, timeoutMs: readTimeout(`tool "${name}"`, tool.timeout) };
}

function lost(error: unknown): ServeConnection {
  return { status: 'lost', reason: error instanceof Error ? error.message : String(error) };
}
