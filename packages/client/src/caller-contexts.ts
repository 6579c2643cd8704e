import { pause } from './back-off.js';
import type { ToolCall } from './wire.js';

/**
 * What the caller of a tool knows of it and tells the handler. It stays in this process: the gateway neither sees nor checks it,
 * and decides by the credentials and by what it has stored.
 */
export interface CallerContext {
  /** The user whom the call is for. */
  userId?: string;
  /** The agent whose tools and grants count. */
  maestroId?: string;
  conversationHistory?: readonly unknown[];
  userProfile?: unknown;
  /** Tools that have given an output. */
  activeTools?: readonly string[];
  grantedPermissions?: readonly string[];
}

const MEMBERS: ReadonlyArray<keyof CallerContext> = [
  'userId',
  'maestroId',
  'conversationHistory',
  'userProfile',
  'activeTools',
  'grantedPermissions',
];

/** The members that are for the handler; `undefined` if there are none. */
export function callerContext(given: CallerContext): CallerContext | undefined {
  const known = MEMBERS.filter((member) => given[member] !== undefined);
  return known.length === 0 ? undefined : Object.fromEntries(known.map((member) => [member, given[member]]));
}

/** Longest wait for a pending request that may have made this call. */
const RESPONSE_WAIT_MS = 2000;
/** Contexts that are kept; the oldest one is dropped first. */
const CONTEXTS_MAX = 1000;

/** The contexts of the calls that this client has made, for the handlers that it executes. */
export class CallerContexts {
  readonly #byCall = new Map<string, CallerContext>();
  /** Calls that are being made, whose ids are not known yet. */
  readonly #beginning = new Set<{ tool: string; begun: Promise<unknown> }>();

  /** Makes a call of a tool, and keeps its context until `forget`. */
  async begin(tool: string, make: () => Promise<ToolCall>, context: CallerContext): Promise<ToolCall> {
    const begun = make().then((call) => {
      this.#keep(call.toolCallId, context);
      return call;
    });
    const beginning = { tool, begun };
    this.#beginning.add(beginning);
    try {
      return await begun;
    } finally {
      this.#beginning.delete(beginning);
    }
  }

  /** The context of a call of a tool; `undefined` if this client has not made it, or without one. */
  async of(tool: string, callId: string): Promise<CallerContext | undefined> {
    // The event of a call may arrive before the response to the request that has made it.
    const begun = [...this.#beginning].filter((one) => one.tool === tool).map((one) => one.begun);
    if (begun.length > 0 && !this.#byCall.has(callId)) {
      const over = new AbortController();
      await Promise.race([Promise.allSettled(begun), pause(RESPONSE_WAIT_MS, over.signal)]);
      // A timer that is left keeps a Node process alive.
      over.abort();
    }
    return this.#byCall.get(callId);
  }

  /** Drops the context of a call that has ended. */
  forget(callId: string): void {
    this.#byCall.delete(callId);
  }

  #keep(callId: string, context: CallerContext): void {
    this.#byCall.set(callId, context);
    const [oldest] = this.#byCall.keys();
    if (this.#byCall.size > CONTEXTS_MAX && oldest !== undefined) this.#byCall.delete(oldest);
  }
}
