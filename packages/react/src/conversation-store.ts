import type { EventStream } from '@toolgate/client';
import { type Conversation, EMPTY_CONVERSATION, fold } from './conversation.js';

/**
 * Whether events arrive: `waiting` is between two attempts, `failed` will not be tried again, `idle` is when nobody listens
 * or nothing more will come.
 */
export type Connection = 'idle' | 'connecting' | 'live' | 'waiting' | 'failed';

/** A conversation, and whether it is up to date. */
export interface ConversationSnapshot extends Conversation {
  readonly connection: Connection;
  /** Why `connection` is `failed`. */
  readonly connectionError?: Error;
}

/** Shortest time between two publications, so that a fast model does not render every token on its own. */
const PUBLISH_MILLISECONDS = 16;

export const EMPTY_SNAPSHOT: ConversationSnapshot = { ...EMPTY_CONVERSATION, connection: 'idle' };

/**
 * A stream of events, folded. It reads while somebody listens and stops when nobody does; what it has read it
 * keeps, and goes on from there.
 */
export class ConversationStore {
  readonly #connect: (after: number) => EventStream;
  #folded: ConversationSnapshot = EMPTY_SNAPSHOT;
  #published: ConversationSnapshot = EMPTY_SNAPSHOT;
  #publishedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #listeners = new Set<() => void>();
  #stream: EventStream | undefined;

  /** `connect` gives the events after a place. */
  constructor(connect: (after: number) => EventStream) {
    this.#connect = connect;
  }

  /** What is known now. The same object until something changes. */
  readonly snapshot = (): ConversationSnapshot => this.#published;

  /** What is known before anything was read: what a server renders. */
  readonly serverSnapshot = (): ConversationSnapshot => EMPTY_SNAPSHOT;

  /** Calls `listener` after each change, until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    // A listener of its own for each call: the same function may listen twice.
    const entry = (): void => listener();
    this.#listeners.add(entry);
    this.#open();
    return () => {
      this.#listeners.delete(entry);
      // Whoever leaves often comes back at once, as StrictMode does: a connection is not worth less than that.
      queueMicrotask(() => this.#listeners.size === 0 && this.#close());
    };
  };

  /** Tries again after `failed`, at once. */
  readonly reconnect = (): void => {
    this.#close();
    if (this.#listeners.size > 0) this.#open();
  };

  #open(): void {
    if (this.#stream) return;
    const stream = this.#connect(this.#folded.cursor);
    this.#stream = stream;
    this.#change({ connection: 'connecting' });
    const change = (make: () => Partial<ConversationSnapshot>) => {
      if (this.#stream === stream) this.#change(make());
    };
    stream.on('open', () => change(() => ({ connection: 'live' })));
    stream.on('cut', () => change(() => ({ connection: 'waiting' })));
    stream.on('error', (error) => change(() => ({ connection: 'failed', connectionError: asError(error) })));
    // It ends by itself when there is nothing more to come, as with a run that has ended.
    stream.on('close', () => {
      if (this.#folded.connection !== 'failed') change(() => ({ connection: 'idle' }));
    });
    stream.on('*', (event) => change(() => fold(this.#folded, event)));
  }

  #close(): void {
    this.#stream?.close();
    this.#stream = undefined;
    this.#change({ connection: 'idle' });
  }

  #change(change: Partial<ConversationSnapshot>): void {
    const { connectionError: _, ...rest } = this.#folded;
    this.#folded = { ...rest, ...change };
    if (this.#timer !== undefined) return;
    const due = this.#publishedAt + PUBLISH_MILLISECONDS - Date.now();
    if (due <= 0) this.#publish();
    else this.#timer = setTimeout(() => this.#publish(), due);
  }

  #publish(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#publishedAt = Date.now();
    this.#published = this.#folded;
    for (const listener of this.#listeners) listener();
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
