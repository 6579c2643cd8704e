import { CODES, ConnectionError, ProtocolError } from './error.js';

/** The longest event, in UTF-16 units. The gateway's largest results are far below it. */
export const EVENT_LENGTH_MAX: number = 16 * 1024 * 1024;

/** One server-sent event. */
export interface ServerSentEvent {
  id: string | undefined;
  event: string;
  data: string;
}

/** How long a connection may be silent. The gateway's heartbeats are far more frequent. */
const SILENCE_MS_MAX = 60_000;

/**
 * Reads a body of server-sent events until it ends or breaks, or the signal fires. Comments are skipped;
 * `retry:` is passed to `onRetry`.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
  onRetry?: (ms: number) => void,
): AsyncGenerator<ServerSentEvent, void, void> {
  const parser = new EventParser(onRetry);
  const reader = body.getReader();
  const decoder = new TextDecoder();
  // The body may be broken already; then there is nothing to cancel.
  const cancel = (): Promise<void> => reader.cancel().catch(() => {});
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    if (signal?.aborted) return;
    for (;;) {
      const { done, value } = await readOrGiveUp(reader);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    signal?.removeEventListener('abort', cancel);
    await cancel();
  }
}

/** Gives up on a connection that was lost without an error (a sleeping laptop, a dead proxy). */
async function readOrGiveUp(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    const error = new ConnectionError(CODES.connection, 'the stream sent no heartbeat', { retryable: true });
    timer = setTimeout(() => reject(error), SILENCE_MS_MAX);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Splits text into events, however it arrives. An incomplete event at the end is dropped, as the standard
 * requires.
 */
export class EventParser {
  readonly #onRetry: ((ms: number) => void) | undefined;
  #rest = '';
  #id: string | undefined;
  #event = '';
  #data: string[] = [];
  #length = 0;

  constructor(onRetry?: (ms: number) => void) {
    this.#onRetry = onRetry;
  }

  /** Appends text and returns the events that are complete. */
  push(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    const all = this.#rest + text;
    const lineEnd = /\r\n|\n|\r/g;
    // The text before was searched already, but may end in half of a line ending.
    lineEnd.lastIndex = Math.max(0, this.#rest.length - 1);
    let start = 0;
    for (const line of all.matchAll(lineEnd)) {
      // A `\r` at the very end may be half of `\r\n`.
      if (line[0] === '\r' && line.index === all.length - 1) break;
      const event = this.#line(all.slice(start, line.index));
      if (event) events.push(event);
      start = line.index + line[0].length;
    }
    this.#rest = all.slice(start);
    this.#bound(this.#length + this.#rest.length);
    return events;
  }

  #line(line: string): ServerSentEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? '' : line.slice(colon + 1);
    const value = raw.startsWith(' ') ? raw.slice(1) : raw;
    if (field === 'data') {
      this.#length += value.length;
      this.#bound(this.#length);
      this.#data.push(value);
    } else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.#onRetry?.(Number(value));
    return undefined;
  }

  #dispatch(): ServerSentEvent | undefined {
    const [data, event] = [this.#data, this.#event];
    this.#data = [];
    this.#event = '';
    this.#length = 0;
    return data.length === 0 ? undefined : { id: this.#id, event: event || 'message', data: data.join('\n') };
  }

  #bound(length: number): void {
    if (length > EVENT_LENGTH_MAX) {
      throw new ProtocolError(CODES.protocol, `an event is longer than ${EVENT_LENGTH_MAX} characters`);
    }
  }
}
