import { pause, retryDelay } from './back-off.js';
import type { ToolEnd } from './chunk.js';
import { aborted } from './connection.js';
import {
  AbortedError,
  CODES,
  ConflictError,
  GoneError,
  NotFoundError,
  TimeoutError,
  ToolError,
  ToolgateError,
} from './error.js';
import type { ToolCall, ToolContext } from './tool.js';
import type { ToolOutcome, Tools } from './tools.js';

/** How long a claim holds without another word, unless a job says otherwise; the word is said three times as often. */
const LEASE_SECONDS = 30;

/** How a call went, seen from here. */
export type Fate =
  /** Executed here, and the result is on the gateway's disk. */
  | 'answered'
  /** Somebody else executes it. */
  | 'held'
  /** Settled without us: answered by another, superseded, cancelled, timed out, unknown. */
  | 'settled'
  /** Nothing here runs it; it is offered again. */
  | 'declined';

/** What a call needs to be run. */
export interface CallJob {
  call: ToolCall;
  /** The name the claim is held by. */
  holder: string;
  /** Runs the tool. A `ToolError` with code `TOOL_UNKNOWN` declines the call. */
  execute: (call: ToolCall, context: ToolContext) => unknown;
  timeoutMs?: number;
  /** How long the claim outlives whoever holds it. */
  leaseSeconds?: number;
  /** Gives the call up and back. */
  signal: AbortSignal;
  onStart?: (call: ToolCall) => void;
  /** The tool has run; its result is handed in after this. */
  onEnd?: (end: ToolEnd) => void;
}

/**
 * Claims a call, keeps the claim, executes, hands in the result. Goes on over lost connections and a restarting
 * gateway for as long as the signal allows.
 */
export class CallRunner {
  readonly #tools: Tools;
  readonly #log: (line: string) => void;

  constructor(tools: Tools, log: (line: string) => void) {
    this.#tools = tools;
    this.#log = log;
  }

  /** Throws an `AbortedError` when the signal fires, and what the gateway refuses for reasons that are not the call's. */
  async run(job: CallJob): Promise<Fate> {
    const { call, signal } = job;
    const claimed = await this.#claim(job);
    if (claimed !== 'claimed') return claimed;
    const stop = new AbortController();
    const forward = (): void => stop.abort(aborted(signal));
    signal.addEventListener('abort', forward, { once: true });
    const heart = setInterval(() => this.#beat(job, stop), (leaseOf(job) * 1000) / 3);
    const timer = setTimer(job, stop);
    try {
      const outcome = await this.#execute(job, stop.signal);
      clearTimeout(timer);
      if (outcome === 'lost') return 'settled';
      if (outcome !== 'declined') return await this.#submit(job, outcome);
      await this.#giveBack(job);
      return 'declined';
    } catch (error) {
      if (error instanceof AbortedError) await this.#giveBack(job);
      throw error;
    } finally {
      clearInterval(heart);
      clearTimeout(timer);
      signal.removeEventListener('abort', forward);
      this.#log(`call ${call.toolCallId} of ${call.toolName}: done here`);
    }
  }

  async #claim(job: CallJob): Promise<'claimed' | 'held' | 'settled'> {
    const { call, holder, signal } = job;
    const claim = () => this.#tools.claim(call.toolCallId, { holder, leaseSeconds: leaseOf(job), signal });
    try {
      await persist(claim, signal);
      return 'claimed';
    } catch (error) {
      // A claim that was cut off may have been heard.
      if (error instanceof AbortedError) await this.#giveBack(job);
      const fate = fateOf(error);
      if (fate === undefined) throw error;
      this.#log(`call ${call.toolCallId} of ${call.toolName}: ${(error as Error).message}`);
      return fate;
    }
  }

  /** A beat that is not heard is made up for by the next; one that is refused ends the execution. */
  async #beat(job: CallJob, stop: AbortController): Promise<void> {
    const { call, holder } = job;
    try {
      await this.#tools.claim(call.toolCallId, { holder, leaseSeconds: leaseOf(job), signal: stop.signal });
    } catch (error) {
      if (fateOf(error) !== undefined) stop.abort(new LostClaim());
    }
  }

  async #execute(job: CallJob, signal: AbortSignal): Promise<ToolOutcome | 'lost' | 'declined'> {
    const { call } = job;
    const context: ToolContext = {
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      signal,
      progress: this.#progressOf(call, signal),
      ...(call.runId === undefined ? {} : { runId: call.runId }),
      ...(call.spaceId === undefined ? {} : { spaceId: call.spaceId }),
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
      end({ result });
      return { result };
    } catch (error) {
      if (error instanceof LostClaim) return 'lost';
      if (error instanceof AbortedError) throw error;
      if (error instanceof ToolError && error.code === CODES.toolUnknown) return 'declined';
      const words = wordsOf(error);
      end({ result: { error: words }, error: words });
      return { error: words };
    }
  }

  /** A result that the gateway cannot take is handed in as an error, so that the run goes on. */
  async #submit(job: CallJob, outcome: ToolOutcome): Promise<Fate> {
    const { call, holder, signal } = job;
    const submit = (given: ToolOutcome) =>
      this.#tools.submitRunResult(
        call.runId ?? runOf(call.toolCallId),
        { toolCallId: call.toolCallId, ...given, source: 'client', clientId: holder },
        { signal },
      );
    try {
      await persist(() => submit(outcome), signal);
      return 'answered';
    } catch (error) {
      if (fateOf(error) !== undefined) return 'settled';
      if (!isRefusalOfValue(error) || 'error' in outcome) throw error;
      const words = `the tool ran, but its result was refused: ${wordsOf(error)}`;
      await persist(() => submit({ error: words }), signal);
      return 'answered';
    }
  }

  /** Reports are sent one after another; of those that pile up only the last is. */
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
            this.#log(`progress of ${call.toolName} was not delivered: ${wordsOf(error)}`),
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

  /** Without the signal, which has fired; and without a care: a claim that is not given back runs out. */
  async #giveBack({ call, holder }: CallJob): Promise<void> {
    const signal = AbortSignal.timeout(GIVE_BACK_MS_MAX);
    await this.#tools.release(call.toolCallId, { holder, signal }).catch(() => {});
  }
}

const GIVE_BACK_MS_MAX = 2000;

/** The gateway said that the call is no longer ours. */
class LostClaim extends Error {}

function leaseOf({ leaseSeconds = LEASE_SECONDS }: CallJob): number {
  return leaseSeconds;
}

function setTimer(
  { call, timeoutMs }: CallJob,
  stop: AbortController,
): ReturnType<typeof setTimeout> | undefined {
  if (timeoutMs === undefined) return undefined;
  const words = `${call.toolName} gave no answer within ${timeoutMs} ms`;
  return setTimeout(() => stop.abort(new TimeoutError(CODES.timeout, words)), timeoutMs);
}

/** What a refusal says of the call; `undefined` when it is about something else. */
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

/** Does it again for as long as waiting may help. */
async function persist<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
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

/** What the work gives, or the signal's reason as soon as it fires: an executor that does not listen holds up nobody. */
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

/** A value as JSON will carry it; nothing becomes null. Throws for what JSON cannot say. */
function sendable(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text === undefined ? null : value;
}

function wordsOf(error: unknown): string {
  const words = error instanceof Error ? error.message : String(error);
  return words || 'the tool failed without saying why';
}

/** `call_<run>_<number>` holds the id of its run. */
function runOf(callId: string): string {
  return callId.replace(/^call_(.*)_\d+$/, 'run_$1');
}
