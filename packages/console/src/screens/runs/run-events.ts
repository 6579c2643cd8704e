import type { ToolgateClient, wire } from '@toolgate/client';
import { type Conversation, EMPTY_CONVERSATION, fold } from '@toolgate/react';

/** Events that are stored stand at multiples of this; those between are deltas of the step under way. */
const DURABLE = 1_000_000;
/** Shortest time between two publications. */
const PUBLISH_MS = 60;

/** A run as its events tell it. */
export interface RunStory {
  /** The stored events, oldest first. */
  readonly events: readonly wire.Event[];
  readonly conversation: Conversation;
  readonly state: 'loading' | 'live' | 'cut' | 'ended' | 'failed';
  readonly error?: unknown;
}

const EMPTY: RunStory = { events: [], conversation: EMPTY_CONVERSATION, state: 'loading' };

/** Follows a run's events while somebody listens. */
export class RunEvents {
  readonly #client: ToolgateClient;
  readonly #runId: string;
  readonly #listeners = new Set<() => void>();
  #events: wire.Event[] = [];
  #conversation: Conversation = EMPTY_CONVERSATION;
  #state: RunStory['state'] = 'loading';
  #error: unknown;
  #published: RunStory = EMPTY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #close: (() => void) | undefined;

  constructor(client: ToolgateClient, runId: string) {
    this.#client = client;
    this.#runId = runId;
  }

  readonly snapshot = (): RunStory => this.#published;

  /** Follows it again, after it has failed. */
  readonly retry = (): void => {
    this.#close?.();
    this.#close = undefined;
    this.#error = undefined;
    this.#note('loading');
    this.#open();
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#open();
    return () => {
      this.#listeners.delete(listener);
      // Deferred: StrictMode unsubscribes and subscribes again at once.
      queueMicrotask(() => {
        if (this.#listeners.size > 0) return;
        this.#close?.();
        this.#close = undefined;
      });
    };
  };

  #open(): void {
    if (this.#close || this.#state === 'ended') return;
    const stream = this.#client.runs.subscribe(this.#runId, { after: this.#conversation.cursor });
    const close = (): void => stream.close();
    this.#close = close;
    stream.on('*', (event) => this.#take(event));
    stream.on('open', () => this.#note('live'));
    stream.on('cut', () => this.#note('cut'));
    stream.on('error', (error) => {
      this.#error = error;
      this.#note('failed');
    });
    stream.on('close', () => {
      if (this.#close !== close) return;
      if (this.#state === 'loading' || this.#events.at(-1)?.type === 'run-finish') this.#note('ended');
    });
  }

  #take(event: wire.Event): void {
    if (event.seq % DURABLE === 0) this.#events.push(event);
    this.#conversation = fold(this.#conversation, event);
    this.#publishSoon();
  }

  #note(state: RunStory['state']): void {
    this.#state = state;
    this.#publishSoon();
  }

  #publishSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#published = {
        events: [...this.#events],
        conversation: this.#conversation,
        state: this.#state,
        ...(this.#error !== undefined && { error: this.#error }),
      };
      for (const listener of this.#listeners) listener();
    }, PUBLISH_MS);
  }
}
