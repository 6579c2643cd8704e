import { pause, retryDelay } from './back-off.js';
import { aborted, type Connection } from './connection.js';
import { AbortedError, CODES, ProtocolError, ToolgateError, UnavailableError } from './error.js';
import { readEvents } from './sse.js';
import type { Event } from './wire.js';

/** An event by its type. */
export type EventOf<T extends Event['type']> = Extract<Event, { type: T }>;

/** The argument of a handler: the event, and the same event again as `data`. */
export type Delivered<E extends Event = Event> = E & { readonly data: E };

/** Options of `subscribe`. */
export interface SubscribeOptions {
  /** The cursor: `seq` of the last event that was read; all events if not set. */
  after?: number;
  /** Closes the stream. */
  signal?: AbortSignal;
}

/** What to follow, and from where. */
export interface FollowOptions extends SubscribeOptions {
  path: string;
  /** A response that has opened the stream already, to read first. */
  opened?: Response;
  /** Called on every connection, reconnects included. */
  onOpen?: () => void;
  /** Called on every disconnect that is followed by a reconnect. */
  onCut?: () => void;
  /** Called when a connection could not be opened, and is tried again. */
  onRefused?: (error: unknown) => void;
}

/**
 * Yields events without gaps or duplicates. Reconnects from the last event after any disconnect, with
 * exponential back-off; ends when a run has ended. Throws errors that a retry does not fix: no access, not
 * found, a cursor past retention (`GoneError`), the caller's abort.
 */
export async function* follow(
  connection: Connection,
  options: FollowOptions,
): AsyncGenerator<Event, void, void> {
  const { path, signal } = options;
  let cursor = options.after;
  let response = options.opened;
  let asked: number | undefined;
  for (let failures = 0; ; ) {
    try {
      response ??= await openAt(connection, path, cursor, signal).catch((error: unknown) => {
        if (isPassing(error)) options.onRefused?.(error);
        throw error;
      });
      if (response.status === 204 || response.body === null) return;
      options.onOpen?.();
      for await (const message of readEvents(response.body, signal, (ms) => (asked = ms))) {
        const event = parse(message.data);
        if (event === undefined || (cursor !== undefined && event.seq <= cursor)) continue;
        cursor = event.seq;
        failures = 0;
        asked = undefined;
        yield event;
        // The caller may have aborted while it handled the yielded event.
        if (signal?.aborted) throw aborted(signal);
        if (event.type === 'run-finish' && path.startsWith('/v1/runs/')) return;
      }
    } catch (error) {
      if (signal?.aborted) throw aborted(signal);
      if (!isPassing(error)) throw error;
    }
    response = undefined;
    failures += 1;
    options.onCut?.();
    await pause(Math.max(asked ?? 0, retryDelay(failures)), signal);
    if (signal?.aborted) throw aborted(signal);
  }
}

/** Whether the same request may succeed later: the gateway is away or overloaded. */
export function isPassing(error: unknown): boolean {
  if (error instanceof AbortedError) return false;
  return error instanceof UnavailableError || !(error instanceof ToolgateError) || error.retryable;
}

async function openAt(
  connection: Connection,
  path: string,
  cursor: number | undefined,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (cursor !== undefined) headers['last-event-id'] = String(cursor);
  // Not retried by the connection: this loop reconnects, with its own count of failures.
  return connection.send(path, { headers, safe: false, ...(signal ? { signal } : {}) });
}

/** Parses an event. An event of an unknown type is passed on; a value that is not an event is skipped. */
function parse(data: string): Event | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch (cause) {
    throw new ProtocolError(CODES.protocol, 'an event is not JSON', { cause });
  }
  const event = value as Partial<Event> | null;
  return typeof event?.type === 'string' && typeof event.seq === 'number' ? (event as Event) : undefined;
}

/** Notifications about the stream itself. */
export interface StreamNotes {
  /** A connection is open; also after a reconnect. */
  open: undefined;
  /** The connection broke or could not be opened; it is retried. */
  cut: undefined;
  /** The stream ended with this error, or a handler threw it. */
  error: unknown;
  /** The stream ended. */
  close: undefined;
}

type Handler = (value: never) => unknown;

/**
 * The events of a run or a space. Listen with `on`, or iterate. Nothing is requested before that; handlers
 * share one connection, each iteration has its own.
 */
export class EventStream implements AsyncIterable<Event> {
  readonly #connection: Connection;
  readonly #options: FollowOptions;
  readonly #stop: AbortController = new AbortController();
  readonly #handlers = new Map<string, Set<Handler>>();
  #started = false;
  #cursor: number | undefined;

  constructor(connection: Connection, options: FollowOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#cursor = options.after;
    if (options.signal?.aborted) this.close();
    else
      options.signal?.addEventListener('abort', () => this.close(), {
        once: true,
        signal: this.#stop.signal,
      });
  }

  /** The cursor: `seq` of the last event that was delivered; pass it as `after` to resume later. */
  get cursor(): number | undefined {
    return this.#cursor;
  }

  /** Whether the stream was closed or has ended. */
  get closed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Calls `handler` for every event of a type, `*` for all of them. Returns a function that removes it. */
  on<T extends Event['type']>(type: T, handler: (event: Delivered<EventOf<T>>) => unknown): () => void;
  on(type: '*', handler: (event: Delivered) => unknown): () => void;
  on<N extends keyof StreamNotes>(note: N, handler: (value: StreamNotes[N]) => unknown): () => void;
  on(type: string, handler: Handler): () => void {
    const handlers = this.#handlers.get(type) ?? new Set();
    this.#handlers.set(type, handlers.add(handler));
    if (!this.#started && !this.closed) {
      this.#started = true;
      // Deferred, so that the caller can add its other handlers first.
      queueMicrotask(() => this.#pump());
    }
    return () => handlers.delete(handler);
  }

  /** Closes the stream. No handler is called for an event after this. */
  close(): void {
    if (this.closed) return;
    this.#stop.abort();
    this.#emit('close', undefined);
  }

  /** Ends when the stream is closed; throws the error that ends it otherwise. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, void> {
    if (this.closed) return;
    try {
      for await (const event of this.#follow()) {
        this.#cursor = event.seq;
        yield event;
      }
    } catch (error) {
      if (!(error instanceof AbortedError)) throw error;
    }
  }

  #follow(): AsyncGenerator<Event, void, void> {
    return follow(this.#connection, {
      path: this.#options.path,
      signal: this.#stop.signal,
      onOpen: () => this.#emit('open', undefined),
      onCut: () => this.#emit('cut', undefined),
      ...(this.#cursor === undefined ? {} : { after: this.#cursor }),
    });
  }

  async #pump(): Promise<void> {
    try {
      for await (const event of this.#follow()) {
        this.#cursor = event.seq;
        const delivered = Object.defineProperty(event, 'data', { value: event, enumerable: false });
        this.#emit(event.type, delivered);
        this.#emit('*', delivered);
      }
    } catch (error) {
      if (!(error instanceof AbortedError)) this.#emit('error', error);
    }
    this.close();
  }

  /** An error of a handler does not end the stream: it goes to the `error` handlers. */
  #emit(type: string, value: unknown): void {
    for (const handler of this.#handlers.get(type) ?? []) {
      const failed = (error: unknown): void => {
        if (type !== 'error') this.#emit('error', error);
      };
      try {
        const outcome = (handler as (value: unknown) => unknown)(value);
        if (outcome instanceof Promise) outcome.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  }
}
