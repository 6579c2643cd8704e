import { type ToolContext, ToolgateError } from '@toolgate/client';
import { callsOf } from './conversation.js';
import { isSettled, type ToolCall } from './message.js';
import type { SpaceStore } from './space-store.js';
import { handlerOf, type ToolHandler, type Tools } from './tool.js';

/** What happens to the calls under way when their tools go away: given to somebody else, or finished here. */
export type OnUnmount = 'release' | 'finish';

/** Tools that somebody on the page offers. */
export interface ToolSource {
  readonly tools: Tools;
  readonly onUnmount: OnUnmount;
}

/** Tools on offer. */
export interface ToolOffer {
  /** Changes them; calls under way go on as they were begun. */
  readonly replace: (source: ToolSource) => void;
  readonly close: () => void;
}

/** Long enough that a tab in the background, whose timers run once a minute, keeps its claims. */
const LEASE_SECONDS = 90;
const HEARTBEAT_MILLISECONDS = 30_000;
/** After a failure that may pass: how long to wait before trying again, each time doubled. */
const RETRY_MILLISECONDS = 500;
const RETRY_MILLISECONDS_MAX = 15_000;

interface Work {
  readonly call: ToolCall;
  /** Who claims it. A name for each attempt: a late release of one cannot end the claim of the next. */
  readonly holder: string;
  readonly stop: AbortController;
  onUnmount: OnUnmount;
}

/**
 * Executes the open client calls of one space whose tools the page offers. Each call is claimed before it is
 * executed, so that of several tabs one does it. What to do follows from the conversation alone: a call that was
 * left open, by a reload or by another tab, is taken like a new one.
 */
export class ToolExecutor {
  readonly #store: SpaceStore;
  readonly #sources = new Set<{ current: ToolSource }>();
  readonly #working = new Map<string, Work>();
  /** Calls as they were when somebody else turned out to have them; tried again when they have changed. */
  readonly #refused = new Map<string, ToolCall>();
  /** Calls whose outcome is stored, though the event that says so may still be on its way. */
  readonly #settled = new Set<string>();
  #leave: (() => void) | undefined;
  #isLookDue = false;
  /** The page is going away, or lies in the browser's back-forward cache: it must not take anything. */
  #isHidden = false;

  constructor(store: SpaceStore) {
    this.#store = store;
  }

  /** Offers tools until `close` is called. */
  offer(source: ToolSource): ToolOffer {
    const entry = { current: source };
    this.#sources.add(entry);
    this.#arrive();
    this.#lookSoon();
    return {
      replace: (next) => {
        entry.current = next;
        this.#lookSoon();
      },
      close: () => {
        this.#sources.delete(entry);
        this.#lookSoon();
      },
    };
  }

  #arrive(): void {
    if (this.#leave) return;
    const unsubscribe = this.#store.subscribe(() => this.#look());
    const hide = (): void => this.#hide();
    const show = (): void => this.#show();
    globalThis.addEventListener?.('pagehide', hide);
    globalThis.addEventListener?.('pageshow', show);
    this.#leave = () => {
      unsubscribe();
      globalThis.removeEventListener?.('pagehide', hide);
      globalThis.removeEventListener?.('pageshow', show);
    };
  }

  /** Later in this task: who closes and offers again in one go, as StrictMode does, changes nothing. */
  #lookSoon(): void {
    if (this.#isLookDue) return;
    this.#isLookDue = true;
    queueMicrotask(() => {
      this.#isLookDue = false;
      this.#look();
    });
  }

  #look(): void {
    if (this.#isHidden) return;
    const calls = new Map(callsOf(this.#store.snapshot()).map((call) => [call.id, call]));
    for (const work of this.#working.values()) this.#review(work, calls.get(work.call.id));
    for (const call of calls.values()) {
      if (this.#isOpen(call)) this.#take(call);
    }
    if (this.#sources.size === 0 && this.#working.size === 0) {
      this.#leave?.();
      this.#leave = undefined;
    }
  }

  /** Ends work whose result nobody wants any more. */
  #review(work: Work, call: ToolCall | undefined): void {
    const source = this.#sourceOf(work.call.name);
    if (source) work.onUnmount = source.onUnmount;
    if (call && isSettled(call.state)) work.stop.abort(new Error(`the call is settled: ${call.state}`));
    else if (!source && work.onUnmount === 'release') this.#giveBack(work);
  }

  #isOpen(call: ToolCall): boolean {
    if (call.placement !== 'client' || call.deadline === undefined) return false;
    if (this.#working.has(call.id) || this.#settled.has(call.id)) return false;
    return call.state === 'input-available' && this.#refused.get(call.id) !== call;
  }

  #sourceOf(toolName: string): ToolSource | undefined {
    for (const { current } of this.#sources) if (handlerOf(current.tools, toolName)) return current;
    return undefined;
  }

  #take(call: ToolCall): void {
    const source = this.#sourceOf(call.name);
    const handler = source && handlerOf(source.tools, call.name);
    if (!handler) return;
    const { onUnmount } = source;
    const work = { call, holder: `page_${randomText()}`, stop: new AbortController(), onUnmount };
    this.#working.set(call.id, work);
    void this.#perform(work, handler).finally(() => {
      if (this.#working.get(call.id) === work) this.#working.delete(call.id);
      this.#lookSoon();
    });
  }

  /** Claims, executes, submits. Never throws. */
  async #perform(work: Work, handler: { execute: ToolHandler; timeout?: number }): Promise<void> {
    if (!(await this.#claim(work))) return;
    const heartbeat = setInterval(() => void this.#keep(work), HEARTBEAT_MILLISECONDS);
    try {
      const outcome = await this.#execute(work, handler);
      if (!work.stop.signal.aborted) await this.#submit(work, outcome);
    } finally {
      clearInterval(heartbeat);
    }
  }

  async #claim(work: Work): Promise<boolean> {
    const { call, stop } = work;
    try {
      await persist(() => this.#askFor(work), stop.signal);
    } catch (error) {
      this.#refused.set(call.id, call);
      stop.abort(error);
      return false;
    }
    // Given back while the claim was on its way: it may have arrived last.
    if (stop.signal.aborted) this.#release(work);
    return !stop.signal.aborted;
  }

  /** Renews the lease. A renewal that gets lost is followed by the next; a refusal means that another has the call. */
  async #keep(work: Work): Promise<void> {
    try {
      await this.#askFor(work);
    } catch (error) {
      if (!isPassing(error)) work.stop.abort(error);
    }
  }

  #askFor({ call, holder }: Work): Promise<unknown> {
    return this.#store.client.tools.claim(call.id, { holder, leaseSeconds: LEASE_SECONDS });
  }

  #release({ call, holder }: Work): void {
    // When it gets lost, the lease runs out by itself.
    this.#store.client.tools.release(call.id, { holder }).catch(() => {});
  }

  async #execute(
    work: Work,
    { execute, timeout }: { execute: ToolHandler; timeout?: number },
  ): Promise<Outcome> {
    const { call, stop } = work;
    const late = new AbortController();
    const timer = timeout && setTimeout(() => late.abort(new Error(lateWords(call, timeout))), timeout);
    const signal = AbortSignal.any([stop.signal, late.signal]);
    try {
      const result = await Promise.race([
        Promise.resolve(call.input).then((input) => execute(input, this.#contextOf(call, signal))),
        new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        }),
      ]);
      return { result: result === undefined ? null : JSON.parse(JSON.stringify(result)) };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    } finally {
      clearTimeout(timer);
    }
  }

  #contextOf(call: ToolCall, signal: AbortSignal): ToolContext {
    const { id, name, runId, spaceId } = call;
    return {
      toolCallId: id,
      toolName: name,
      runId,
      spaceId,
      signal,
      // Progress is a courtesy: a lost one is followed by the next.
      progress: (value) => this.#store.client.tools.progress(id, value).catch(() => {}),
    };
  }

  /** Hands in the outcome, until it is stored or nobody wants it any more. */
  async #submit({ call, stop }: Work, outcome: Outcome): Promise<void> {
    const { client, spaceId } = this.#store;
    const submit = (body: Outcome) =>
      persist(() => client.tools.submitResult(spaceId, { toolCallId: call.id, ...body }), stop.signal);
    try {
      await submit(outcome);
    } catch (error) {
      // A result that does not fit the tool's output schema leaves the call open: tell the model instead. Any other
      // refusal means that the call has its outcome.
      const isMisfit = error instanceof ToolgateError && error.code === 'VALIDATION_FAILED';
      if (isMisfit && 'result' in outcome) await submit({ error: error.message }).catch(() => {});
    }
    if (!stop.signal.aborted) this.#settled.add(call.id);
  }

  #giveBack(work: Work): void {
    work.stop.abort(new Error('the tool is no longer offered here'));
    this.#working.delete(work.call.id);
    this.#release(work);
  }

  /** The page goes away: somebody else, or its next self, may have the calls at once. */
  #hide(): void {
    this.#isHidden = true;
    for (const work of this.#working.values()) this.#giveBack(work);
  }

  #show(): void {
    this.#isHidden = false;
    this.#lookSoon();
  }
}

type Outcome = { result: unknown } | { error: string };

/** Tries until it works, until trying again cannot help, or until `signal` fires. */
async function persist<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let wait = RETRY_MILLISECONDS; ; wait = Math.min(2 * wait, RETRY_MILLISECONDS_MAX)) {
    try {
      return await attempt();
    } catch (error) {
      if (!isPassing(error) || signal.aborted) throw error;
      await pause(wait, signal);
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof ToolgateError && error.retryable;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    const wake = (): void => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener('abort', wake, { once: true });
  });
}

function lateWords(call: ToolCall, milliseconds: number): string {
  return `${call.name} gave no answer within ${milliseconds} ms`;
}

function randomText(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
