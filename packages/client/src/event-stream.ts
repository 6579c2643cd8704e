import { pause, retryDelay } from './back-off.js';
import { aborted, type Connection } from './connection.js';
import { AbortedError, CODES, ProtocolError, ToolgateError, UnavailableError } from './error.js';
import { readEvents } from './sse.js';
import type { Event } from './wire.js';

/** An event by its type. */
export type EventOf<T extends Event['type']> = Extract<Event, { type: T }>;

/** What a handler is given: the event, and the same again as `data` for those who look there. */
export type Delivered<E extends Event = Event> = E & { readonly data: E };

/** What `subscribe` takes. */
export interface SubscribeOptions {
  /** The `seq` of the last event that was read; nothing for all of them. */
  after?: number;
  /** Closes the stream. */
  signal?: AbortSignal;
}

/** What to follow, and from where. */
export interface FollowOptions extends SubscribeOptions {
  path: string;
  /** The answer to read first, when a request has opened the stream already. */
  opened?: Response;
  /** Told of every connection, also of those after a cut. */
  onOpen?: () => void;
  /** Told of every cut that it will come back from. */
  onCut?: () => void;
}

/**
 * Events one by one, without gap and without repeat. Reconnects from the last one after any cut, with growing
 * pauses; ends when a run has ended. Throws what waiting does not cure: no access, not found, a cursor that is
 * past retention (`GoneError`), the caller's abort.
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
      response ??= await openAt(connection, path, cursor, signal);
      if (response.status === 204 || response.body === null) return;
      options.onOpen?.();
      for await (const message of readEvents(response.body, signal, (ms) => (asked = ms))) {
        const event = parse(message.data);
        if (event === undefined || (cursor !== undefined && event.seq <= cursor)) continue;
        cursor = event.seq;
        failures = 0;
        asked = undefined;
        yield event;
        // Yielding gave the caller time to change its mind.
        if (signal?.aborted) throw aborted(signal);
        if (event.type === 'run-finish' && path.startsWith('/v1/runs/')) return;
      }
    } catch (error) {
      if (signal?.aborted) throw aborted(signal);
      const passes =
        error instanceof UnavailableError || !(error instanceof ToolgateError) || error.retryable;
      if (!passes) throw error;
    }
    response = undefined;
    failures += 1;
    options.onCut?.();
    await pause(Math.max(asked ?? 0, retryDelay(failures)), signal);
    if (signal?.aborted) throw aborted(signal);
  }
}

async function openAt(
  connection: Connection,
  path: string,
  cursor: number | undefined,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (cursor !== undefined) headers['last-event-id'] = String(cursor);
  // Coming back is this file's work, with its own count of failures.
  return connection.send(path, { headers, safe: false, ...(signal ? { signal } : {}) });
}

/** An event of a type that is not known yet is passed on; what is no event at all is skipped. */
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

/** What a stream says of itself. */
export interface StreamNotes {
  /** A connection stands; also after a cut. */
  open: undefined;
  /** The connection broke, or could not be made; it is tried again. */
  cut: undefined;
  /** It ended for good, because of this; or a handler threw this. */
  error: unknown;
  /** It ended. */
  close: undefined;
}

type Handler = (value: never) => unknown;

/**
 * The events of a run or a space. Listen with `on`, or iterate. Nothing is sent until one of them is done;
 * several handlers share a connection, each iteration has its own.
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

  /** The `seq` of the last event that was delivered: give it as `after` to go on from here later. */
  get cursor(): number | undefined {
    return this.#cursor;
  }

  /** Whether it was closed, or has ended. */
  get closed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Calls `handler` for every event of a type, `*` for all of them. Gives what stops it. */
  on<T extends Event['type']>(type: T, handler: (event: Delivered<EventOf<T>>) => unknown): () => void;
  on(type: '*', handler: (event: Delivered) => unknown): () => void;
  on<N extends keyof StreamNotes>(note: N, handler: (value: StreamNotes[N]) => unknown): () => void;
  on(type: string, handler: Handler): () => void {
    const handlers = this.#handlers.get(type) ?? new Set();
    this.#handlers.set(type, handlers.add(handler));
    if (!this.#started && !this.closed) {
      this.#started = true;
      // After the caller has added its other handlers.
      queueMicrotask(() => this.#pump());
    }
    return () => handlers.delete(handler);
  }

  /** Ends it. No handler is called for an event after this. */
  close(): void {
    if (this.closed) return;
    this.#stop.abort();
    this.#tell('close', undefined);
  }

  /** Ends quietly when the stream is closed; throws what ends it otherwise. */
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
      onOpen: () => this.#tell('open', undefined),
      onCut: () => this.#tell('cut', undefined),
      ...(this.#cursor === undefined ? {} : { after: this.#cursor }),
    });
  }

  async #pump(): Promise<void> {
    try {
      for await (const event of this.#follow()) {
        this.#cursor = event.seq;
        const delivered = Object.defineProperty(event, 'data', { value: event, enumerable: false });
        this.#tell(event.type, delivered);
        this.#tell('*', delivered);
      }
    } catch (error) {
      if (!(error instanceof AbortedError)) this.#tell('error', error);
    }
    this.close();
  }

  /** A handler that fails does not fail the stream: its error goes to the `error` handlers. */
  #tell(type: string, value: unknown): void {
    for (const handler of this.#handlers.get(type) ?? []) {
      const failed = (error: unknown): void => {
        if (type !== 'error') this.#tell('error', error);
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
