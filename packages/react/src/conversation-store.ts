import type { EventStream } from '@toolgate/client';
import { type Conversation, EMPTY_CONVERSATION, fold } from './conversation.js';

/**
 * State of the event stream: `waiting` is the pause before a reconnect, `failed` is not retried, `idle` means
 * that nobody listens or no more events will come.
 */
export type Connection = 'idle' | 'connecting' | 'live' | 'waiting' | 'failed';

/** A conversation, and the state of its stream. */
export interface ConversationSnapshot extends Conversation {
  readonly connection: Connection;
  /** The error, if `connection` is `failed`. */
  readonly connectionError?: Error;
}

/** Shortest time between two publications, so that a fast model does not cause a render per token. */
const PUBLISH_MILLISECONDS = 16;

export const EMPTY_SNAPSHOT: ConversationSnapshot = { ...EMPTY_CONVERSATION, connection: 'idle' };

/**
 * Folds a stream of events into a conversation. It is connected while it has listeners; afterwards it keeps
 * its state and resumes from there.
 */
export class ConversationStore {
  readonly #connect: (after: number) => EventStream;
  #folded: ConversationSnapshot = EMPTY_SNAPSHOT;
  #published: ConversationSnapshot = EMPTY_SNAPSHOT;
  #publishedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #listeners = new Set<() => void>();
  #stream: EventStream | undefined;

  /** `connect` opens the stream of events after a cursor. */
  constructor(connect: (after: number) => EventStream) {
    this.#connect = connect;
  }

  /** The current state. The same object until something changes. */
  readonly snapshot = (): ConversationSnapshot => this.#published;

  /** The state before any event was read, which a server renders. */
  readonly serverSnapshot = (): ConversationSnapshot => EMPTY_SNAPSHOT;

  /** Calls `listener` after each change, until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    // Wrapped, so that the same function can be subscribed twice.
    const entry = (): void => listener();
    this.#listeners.add(entry);
    this.#open();
    return () => {
      this.#listeners.delete(entry);
      // Deferred: StrictMode unsubscribes and subscribes again at once, which must not cost a connection.
      queueMicrotask(() => this.#listeners.size === 0 && this.#close());
    };
  };

  /** Reconnects at once after `failed`. */
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
    // The stream ends by itself when no more events will come, as for a run that has ended.
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
