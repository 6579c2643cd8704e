import { pause, retryDelay } from './back-off.js';
import type { ToolEnd } from './chunk.js';
import { aborted } from './connection.js';
import { readHistory } from './conversation-history.js';
import {
  AbortedError,
  AccessError,
  CODES,
  ConflictError,
  GoneError,
  NotFoundError,
  TimeoutError,
  ToolError,
  ToolgateError,
} from './error.js';
import type { Runs, Spaces } from './resources.js';
import type { ToolCall, ToolContext } from './tool.js';
import { returnedError } from './tool-result.js';
import type { ToolOutcome, Tools } from './tools.js';
import type { Member } from './wire.js';

/** Lease of a claimed call in seconds, unless a job sets another; renewed three times as often. */
const LEASE_SECONDS = 30;

/** What a call is executed for: a client, or the parts of one that calls need. */
export interface CallGateway {
  readonly tools: Tools;
  readonly runs: Runs;
  readonly spaces: Spaces;
}

/** How a call ended for this client. */
export type Fate =
  /** Executed here, and the gateway has stored the result. */
  | 'answered'
  /** Another client executes it. */
  | 'held'
  /** Ended without this client: another result, superseded, cancelled, timed out, or unknown. */
  | 'settled'
  /** This client has no executor for it; the call was released. */
  | 'declined';

/** A call to execute, and how. */
export interface CallJob {
  call: ToolCall;
  /** The name that holds the lease. */
  holder: string;
  /** Runs the tool. A `ToolError` with code `TOOL_UNKNOWN` declines the call. */
  execute: (call: ToolCall, context: ToolContext) => unknown;
  timeoutMs?: number;
  /** How long the lease outlives a client that dies, in seconds; asked before each renewal. */
  leaseSeconds?: number | (() => number);
  /** Cancels the execution and releases the call. */
  signal: AbortSignal;
  onStart?: (call: ToolCall) => void;
  /** Called when the tool has run, before its result is submitted. */
  onEnd?: (end: ToolEnd) => void;
}

/**
 * Claims a call, renews the lease, executes the tool, submits the result. Retries over disconnects and a
 * restarting gateway for as long as the signal allows.
 */
export class CallRunner {
  readonly #gateway: CallGateway;
  readonly #tools: Tools;
  readonly #log: (line: string) => void;

  constructor(gateway: CallGateway, log: (line: string) => void) {
    this.#gateway = gateway;
    this.#tools = gateway.tools;
    this.#log = log;
  }

  /**
   * Throws an `AbortedError` when the signal fires, and errors of the gateway that are not about the call.
   */
  async run(job: CallJob): Promise<Fate> {
    const { signal } = job;
    const claimed = await this.#claim(job);
    if (claimed !== 'claimed') return claimed;
    const stop = new AbortController();
    const forward = (): void => stop.abort(aborted(signal));
    signal.addEventListener('abort', forward, { once: true });
    const stopRenewing = this.#keepRenewing(job, stop);
    const timer = setTimer(job, stop);
    try {
      const outcome = await this.#execute(job, stop.signal);
      clearTimeout(timer);
      if (outcome === 'lost') return 'settled';
      if (outcome !== 'declined') return await this.#submit(job, outcome);
      await this.#release(job);
      return 'declined';
    } catch (error) {
      if (error instanceof AbortedError) await this.#release(job);
      throw error;
    } finally {
      stopRenewing();
      clearTimeout(timer);
      signal.removeEventListener('abort', forward);
    }
  }

  async #claim(job: CallJob): Promise<'claimed' | 'held' | 'settled'> {
    const { call, holder, signal } = job;
    const claim = () => this.#tools.claim(call.toolCallId, { holder, leaseSeconds: leaseOf(job), signal });
    try {
      await retryUntilDone(claim, signal);
      return 'claimed';
    } catch (error) {
      // The claim may have reached the gateway although its response was lost.
      if (error instanceof AbortedError) await this.#release(job);
      const fate = fateOf(error);
      if (fate === undefined) throw error;
      this.#log(`call ${call.toolCallId} of ${call.toolName}: ${(error as Error).message}`);
      return fate;
    }
  }

  /** Renews the lease until the returned function is called; at once when a page is hidden or shown again. */
  #keepRenewing(job: CallJob, stop: AbortController): () => void {
    let timer: ReturnType<typeof setTimeout>;
    const renew = (): void => {
      clearTimeout(timer);
      void this.#renewLease(job, stop);
      schedule();
    };
    const schedule = (): void => {
      timer = setTimeout(renew, (leaseOf(job) * 1000) / 3);
    };
    schedule();
    globalThis.document?.addEventListener('visibilitychange', renew);
    return () => {
      clearTimeout(timer);
      globalThis.document?.removeEventListener('visibilitychange', renew);
    };
  }

  /**
   * Renews the lease. A renewal that fails is made up for by the next; one that is rejected ends the
   * execution.
   */
  async #renewLease(job: CallJob, stop: AbortController): Promise<void> {
    const { call, holder } = job;
    try {
      await this.#tools.claim(call.toolCallId, { holder, leaseSeconds: leaseOf(job), signal: stop.signal });
    } catch (error) {
      if (fateOf(error) !== undefined) stop.abort(new LostLease());
    }
  }

  async #execute(job: CallJob, signal: AbortSignal): Promise<ToolOutcome | 'lost' | 'declined'> {
    const { call } = job;
    const { runId, spaceId } = call;
    const context: ToolContext = {
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      signal,
      progress: this.#progressOf(call, signal),
      history: async (options = {}) =>
        spaceId === undefined ? [] : readHistory(this.#gateway, spaceId, options, signal),
      member: async () =>
        spaceId === undefined || runId === undefined
          ? undefined
          : readMember(this.#gateway, spaceId, runId, signal),
      ...(runId === undefined ? {} : { runId }),
      ...(spaceId === undefined ? {} : { spaceId, sessionId: spaceId, conversationId: spaceId }),
    };
    const started = performance.now();
    const end = (outcome: { result?: unknown; error?: string }): void => {
      const { toolCallId, toolName, args } = call;
      const durationMs = performance.now() - started;
      job.onEnd?.({ toolCallId, toolName, args, ...outcome, durationMs });
    };
    try {
      job.onStart?.(call);
      const result = sendable(await unlessAborted(async () => job.execute(call, context), signal));
      const failed = returnedError(result);
      end(failed === undefined ? { result } : { result, error: failed.message });
      return failed === undefined ? { result } : { error: failed };
    } catch (error) {
      if (error instanceof LostLease) return 'lost';
      if (error instanceof AbortedError) throw error;
      if (error instanceof ToolError && error.code === CODES.toolUnknown) return 'declined';
      const message = messageOf(error);
      end({ result: { error: message }, error: message });
      return { error: message };
    }
  }

  /**
   * Submits the result. A result that the gateway rejects is replaced by an error, so that the run can
   * continue.
   */
  async #submit(job: CallJob, outcome: ToolOutcome): Promise<Fate> {
    const { call, holder, signal } = job;
    const submit = (given: ToolOutcome) =>
      this.#tools.submitRunResult(
        call.runId ?? runOf(call.toolCallId),
        { toolCallId: call.toolCallId, ...given, source: 'client', clientId: holder },
        { signal },
      );
    try {
      await retryUntilDone(() => submit(outcome), signal);
      this.#log(`call ${call.toolCallId} of ${call.toolName}: result stored`);
      return 'answered';
    } catch (error) {
      if (fateOf(error) !== undefined) return 'settled';
      if (!isRefusalOfValue(error) || 'error' in outcome) throw error;
      const message = `the tool ran, but its result was rejected: ${messageOf(error)}`;
      await retryUntilDone(() => submit({ error: message }), signal);
      return 'answered';
    }
  }

  /** Sends progress reports one after another; of reports that queue up only the latest is sent. */
  #progressOf(call: ToolCall, signal: AbortSignal): (value: unknown) => Promise<void> {
    let next: { value: unknown } | undefined;
    let sending: Promise<void> | undefined;
    const send = async (): Promise<void> => {
      while (next && !signal.aborted) {
        const { value } = next;
        next = undefined;
        await this.#tools
          .progress(call.toolCallId, value ?? null, { signal })
          .catch((error: unknown) =>
            this.#log(`progress of ${call.toolName} was not delivered: ${messageOf(error)}`),
          );
      }
      sending = undefined;
    };
    return (value) => {
      next = { value };
      sending ??= send();
      return sending;
    };
  }

  /**
   * Without the signal, which has fired. Errors are ignored: a lease that is not released expires. A call that has ended has
   * no lease: its event may arrive before the response to our own result.
   */
  async #release({ call, holder, signal: stopped }: CallJob): Promise<void> {
    if (stopped.reason instanceof CallEnded) return;
    const signal = AbortSignal.timeout(GIVE_BACK_MS_MAX);
    await this.#tools.release(call.toolCallId, { holder, signal }).catch(() => {});
  }
}

const GIVE_BACK_MS_MAX = 2000;

/** The reason with which to abort a job whose call has its outcome: there is nothing to release. */
export class CallEnded extends Error {
  constructor() {
    super('the call has ended');
    this.name = 'CallEnded';
  }
}

/** The gateway rejected the renewal of the lease. */
class LostLease extends Error {}

function leaseOf({ leaseSeconds = LEASE_SECONDS }: CallJob): number {
  return typeof leaseSeconds === 'function' ? leaseSeconds() : leaseSeconds;
}

function setTimer(
  { call, timeoutMs }: CallJob,
  stop: AbortController,
): ReturnType<typeof setTimeout> | undefined {
  if (timeoutMs === undefined) return undefined;
  const message = `${call.toolName} gave no result within ${timeoutMs} ms`;
  return setTimeout(() => stop.abort(new TimeoutError(CODES.timeout, message)), timeoutMs);
}

/** What an error says about the call; `undefined` if it is about something else. */
function fateOf(error: unknown): 'held' | 'settled' | undefined {
  if (error instanceof ConflictError)
    return error.code === 'HELD' || error.code === 'NOT_APPROVED' ? 'held' : 'settled';
  return error instanceof GoneError || error instanceof NotFoundError ? 'settled' : undefined;
}

function isRefusalOfValue(error: unknown): boolean {
  return (
    error instanceof ToolgateError && (error.status === 422 || error.status === 413 || error.status === 400)
  );
}

/** Retries for as long as the error is retryable and the signal allows. */
async function retryUntilDone<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ToolgateError && error.retryable)) throw error;
      await pause(error.retryAfterMs ?? retryDelay(failures), signal);
      if (signal.aborted) throw aborted(signal);
    }
  }
}

/**
 * The result of `work`, or the signal's reason as soon as it fires: an executor that ignores the signal
 * blocks nobody.
 */
export function unlessAborted<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop));
  });
}

/** The member whom a run works for; `undefined` if it is nobody, or no member any more. */
async function readMember(
  { runs, spaces }: CallGateway,
  spaceId: string,
  runId: string,
  signal: AbortSignal,
): Promise<Member | undefined> {
  const { rootId, userId } = await runs.get(runId, { signal });
  // Only backends are told of either; a run of a backend's own has no user.
  if (!rootId) throw new AccessError('FORBIDDEN', 'context.member() needs a client with a secret key');
  if (!userId) return undefined;
  try {
    return await spaces.member(spaceId, userId, { signal });
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** A value as JSON; `undefined` becomes null. Throws for values that JSON cannot represent. */
function sendable(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text === undefined ? null : value;
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message || 'the tool failed without a message';
}

/** The id of the run, which `call_<run>_<number>` contains. */
function runOf(callId: string): string {
  return callId.replace(/^call_(.*)_\d+$/, 'run_$1');
}
