import { CallEnded, CallRunner } from '@toolgate/client';
import { callsOf } from './conversation.js';
import { isSettled, type ToolCall } from './message.js';
import type { SpaceStore } from './space-store.js';
import { handlerOf, type Tools, type ToolWork } from './tool.js';

/**
 * What happens to calls that are executing when their tools are removed: they are released to other clients,
 * or finished.
 */
export type OnUnmount = 'release' | 'finish';

/** Tools that a component of the page provides. */
export interface ToolSource {
  readonly tools: Tools;
  readonly onUnmount: OnUnmount;
}

/** Tools that are provided until `close` is called. */
export interface ToolOffer {
  /** Replaces them; calls that are executing continue as they began. */
  readonly replace: (source: ToolSource) => void;
  readonly close: () => void;
}

/** Lease of a tab that is seen: a crash of it costs no more. */
const LEASE_SECONDS = 20;
/** Long enough that a tab in the background, whose timers run once a minute, keeps its leases. */
const LEASE_SECONDS_HIDDEN = 90;

interface Work {
  readonly call: ToolCall;
  readonly stop: AbortController;
  onUnmount: OnUnmount;
  /** The handler has returned: its result is submitted whatever happens. */
  isExecuted: boolean;
}

/**
 * Executes the open client calls of one space whose tools the page, or a plugin of its client, provides. Each
 * call is claimed before it is executed, so that only one of several tabs does it. What to do follows from
 * the conversation alone: a call that a reload or another tab left open is claimed like a new one.
 */
export class ToolExecutor {
  readonly #store: SpaceStore;
  readonly #runner: CallRunner;
  readonly #sources = new Set<{ current: ToolSource }>();
  readonly #working = new Map<string, Work>();
  /** Calls, as they were when another client turned out to hold them; tried again when they have changed. */
  readonly #refused = new Map<string, ToolCall>();
  /** Calls whose result is stored, although the event may not have arrived yet. */
  readonly #answered = new Set<string>();
  #leave: (() => void) | undefined;
  #isLookDue = false;
  /** The page is being closed, or is in the browser's back-forward cache: it must not claim calls. */
  #isHidden = false;

  constructor(store: SpaceStore) {
    this.#store = store;
    this.#runner = new CallRunner(store.client, () => {});
  }

  /** Provides tools until `close` is called. */
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

  /** Names of the tools that the page provides now. */
  toolNames(): string[] {
    const names = [...this.#sources].flatMap(({ current }) =>
      Object.keys(current.tools).filter((name) => handlerOf(current.tools, name) !== undefined),
    );
    return [...new Set(names)];
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

  /**
   * Deferred within this task: a component that closes and offers again at once, as StrictMode does, changes
   * nothing.
   */
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

  /** Cancels work whose result is no longer wanted. */
  #review(work: Work, call: ToolCall | undefined): void {
    if (work.isExecuted) return;
    const offered = this.#offered(work.call.name);
    if (offered) work.onUnmount = offered.onUnmount;
    if (call && isSettled(call.state)) work.stop.abort(new CallEnded());
    else if (!offered && work.onUnmount === 'release') this.#giveBack(work);
  }

  #isOpen(call: ToolCall): boolean {
    if (call.placement !== 'client' || call.deadline === undefined) return false;
    if (this.#working.has(call.id) || this.#answered.has(call.id)) return false;
    // The tab that sent the message goes first; the call is released when that does not claim it.
    if (call.reserved && call.reserved.holder !== this.#store.client.clientId) return false;
    return call.state === 'input-available' && this.#refused.get(call.id) !== call;
  }

  /** The handler of a tool: one that the page provides, or else one of a plugin. */
  #offered(toolName: string): (ToolWork & Pick<ToolSource, 'onUnmount'>) | undefined {
    for (const { current } of this.#sources) {
      const work = handlerOf(current.tools, toolName);
      if (work) return { ...work, onUnmount: current.onUnmount };
    }
    const { client } = this.#store;
    if (this.#sources.size === 0 || !client.hasExecutor(toolName)) return undefined;
    return {
      execute: (input, context) => client.execute({ ...context, args: input }, context),
      onUnmount: 'release',
    };
  }

  #take(call: ToolCall): void {
    const offered = this.#offered(call.name);
    if (!offered) return;
    const { onUnmount } = offered;
    const work = { call, stop: new AbortController(), onUnmount, isExecuted: false };
    this.#working.set(call.id, work);
    void this.#perform(work, offered).finally(() => {
      if (this.#working.get(call.id) === work) this.#working.delete(call.id);
      this.#lookSoon();
    });
  }

  /** Claims, executes, submits. Never throws. */
  async #perform(work: Work, { execute, timeoutMs }: ToolWork): Promise<void> {
    const { call, stop } = work;
    const { id: toolCallId, name: toolName, runId, spaceId } = call;
    try {
      const fate = await this.#runner.run({
        call: { toolCallId, toolName, runId, spaceId, args: {} },
        // A new name for each attempt: a late release of one cannot end the lease of the next. A call that is reserved for
        // this page is claimed in the name that it is reserved for, and is not reserved a second time.
        holder: call.reserved?.holder ?? `page_${randomText()}`,
        execute: (_, context) => execute(call.input, context),
        onEnd: () => {
          work.isExecuted = true;
        },
        leaseSeconds: () =>
          globalThis.document?.visibilityState === 'hidden' ? LEASE_SECONDS_HIDDEN : LEASE_SECONDS,
        signal: stop.signal,
        ...(timeoutMs !== undefined && { timeoutMs }),
      });
      if (fate === 'answered') this.#answered.add(call.id);
      else this.#refused.set(call.id, call);
    } catch {
      // Released, or rejected for a reason that a retry does not fix.
      if (!stop.signal.aborted) this.#refused.set(call.id, call);
    }
  }

  /** The abort makes the runner release the call. */
  #giveBack(work: Work): void {
    work.stop.abort(new Error('the tool is no longer provided by this page'));
    this.#working.delete(work.call.id);
  }

  /**
   * The page is being closed: releases the calls, so that another tab or the reloaded page can claim them at
   * once.
   */
  #hide(): void {
    this.#isHidden = true;
    for (const work of this.#working.values()) this.#giveBack(work);
  }

  #show(): void {
    this.#isHidden = false;
    this.#lookSoon();
  }
}

function randomText(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
