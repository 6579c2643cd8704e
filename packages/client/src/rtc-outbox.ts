import { retryDelay } from './back-off.js';
import type { Connection } from './connection.js';
import { AbortedError, CODES, errorOfProblem, ValidationError } from './error.js';
import { SendPace } from './send-pace.js';
import { type ChannelNotice, createToolMessage, serializeMessage, ToolEventType } from './tool-message.js';
import type { Problem } from './wire.js';

/** Code of a message that has more bytes than the gateway reads. */
const TOO_LARGE = 'MESSAGE_TOO_LARGE';
/** Code of a message that came too fast. */
const RATE_LIMITED = 'RATE_LIMITED';
/** Messages that are sent before the first of them is answered. The gateway closes a channel on which 256 wait. */
const IN_FLIGHT_MAX = 16;
/** Their bytes, in messages of the largest size; the gateway closes a channel on which four such wait. One is always sent. */
const IN_FLIGHT_LARGEST_MAX = 2;
/** Refusals for its rate after which a message is given up: with the growing pauses between them, after half a minute or more. */
const REFUSALS_MAX = 10;

/** The open channel, as far as messages need it. */
export interface RtcOutlet {
  /** Bytes of one message. */
  readonly bytesMax: number;
  /** What the gateway takes of one channel. */
  readonly messagesPerSecond: number;
  send(text: string): void;
}

/** A message to the gateway. */
export interface OutgoingMessage {
  type: ToolEventType;
  toolId: string;
  payload: Record<string, unknown>;
  /** Stops waiting for the answer; what was sent may still be stored. */
  signal: AbortSignal | undefined;
}

interface Unanswered extends OutgoingMessage {
  text: string;
  bytes: number;
  /** How often the gateway has refused it for its rate. */
  refusals: number;
  resolve: (payload: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * Messages that the gateway has not answered. They wait for a connection, are sent in order, a few at a time and as fast as the
 * gateway takes them, again after a refusal for the rate and on the next connection after a cut. Results that are too large for
 * the channel go over HTTP.
 */
export class RtcOutbox {
  readonly #gateway: Connection;
  readonly #space: string;
  readonly #unanswered = new Map<string, Unanswered>();
  /** Bytes of the messages that were sent over this connection and not answered, also of those that nobody waits for. */
  readonly #inFlight = new Map<string, number>();
  #outlet: RtcOutlet | undefined;
  #pace = new SendPace(1);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #number = 0;

  constructor(gateway: Connection, space: string) {
    this.#gateway = gateway;
    this.#space = space;
  }

  /**
   * Sends a message as soon as this connection or the next one has room for it. Resolves with the receipt; rejects with the
   * problem.
   */
  ask<T>(message: OutgoingMessage): Promise<T> {
    this.#number += 1;
    const id = `m-${this.#number}`;
    const { type, toolId, payload, signal } = message;
    const text = serializeMessage({ ...createToolMessage(type, toolId, payload), id });
    const bytes = new TextEncoder().encode(text).length;
    return new Promise<T>((resolve, reject) => {
      const abort = (): void => {
        this.#unanswered.delete(id);
        reject(new AbortedError(CODES.aborted, 'the caller aborted the message', { cause: signal?.reason }));
      };
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      const heard = (): void => signal?.removeEventListener('abort', abort);
      this.#unanswered.set(id, {
        ...message,
        text,
        bytes,
        refusals: 0,
        resolve: (receipt) => {
          heard();
          resolve(receipt as T);
        },
        reject: (error) => {
          heard();
          reject(error);
        },
      });
      this.#sendWaiting();
    });
  }

  /** Sends everything that was not answered over a new connection; `undefined` when it was cut. */
  connect(outlet: RtcOutlet | undefined): void {
    this.#outlet = outlet;
    this.#inFlight.clear();
    // The gateway counts anew for each connection.
    this.#pace = new SendPace(outlet?.messagesPerSecond ?? 1);
    this.#sendWaiting();
  }

  /** Takes the gateway's answer to a message. False if the notice settles none: a refused message is sent again. */
  answer({ type, id, payload }: ChannelNotice): boolean {
    if (type !== 'CHANNEL_RECEIPT' && type !== 'CHANNEL_PROBLEM') return false;
    const problem = payload as unknown as Problem;
    const isTooLarge = type === 'CHANNEL_PROBLEM' && problem?.code === TOO_LARGE;
    // A text that the gateway did not read has no id for it. Whatever its limit is, the largest message is beyond it.
    const about = id ?? (isTooLarge ? this.#largest() : undefined);
    if (about === undefined || !this.#inFlight.delete(about)) return false;
    const message = this.#unanswered.get(about);
    const isRefused = type === 'CHANNEL_PROBLEM' && problem?.code === RATE_LIMITED;
    const isSettled = message !== undefined && !(isRefused && this.#mayRepeat(message));
    if (isSettled) {
      this.#unanswered.delete(about);
      if (isTooLarge) this.#sendOverHttp(message, errorOfProblem(problem));
      else if (type === 'CHANNEL_RECEIPT') message.resolve(payload);
      else message.reject(errorOfProblem(problem));
    }
    if (isRefused) this.#pace.refused(retryDelay(message?.refusals ?? 1));
    this.#sendWaiting();
    return isSettled;
  }

  /** Rejects everything that waits. */
  fail(error: unknown): void {
    clearTimeout(this.#timer);
    for (const { reject } of this.#unanswered.values()) reject(error);
    this.#unanswered.clear();
  }

  /** Counts a refusal for the rate; whether the message is sent again. */
  #mayRepeat(message: Unanswered): boolean {
    message.refusals += 1;
    return message.refusals < REFUSALS_MAX;
  }

  /** Sends in order what fits in the window and the pace, and comes back for the rest. */
  #sendWaiting(): void {
    clearTimeout(this.#timer);
    for (const [id, message] of this.#unanswered) {
      if (this.#outlet === undefined) return;
      if (this.#inFlight.has(id)) continue;
      const { bytesMax } = this.#outlet;
      // The limit is known only now: each connection has its own.
      if (message.bytes > bytesMax) {
        this.#unanswered.delete(id);
        const words = `the message has ${message.bytes} bytes, more than the ${bytesMax} that the gateway reads`;
        this.#sendOverHttp(message, new ValidationError(TOO_LARGE, words));
        continue;
      }
      // An answer makes room.
      if (!this.#hasRoom(message.bytes, IN_FLIGHT_LARGEST_MAX * bytesMax)) return;
      const { waitMs } = this.#pace;
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#sendWaiting(), waitMs);
        return;
      }
      this.#pace.sent();
      this.#inFlight.set(id, message.bytes);
      this.#outlet.send(message.text);
    }
  }

  #hasRoom(bytes: number, bytesMax: number): boolean {
    const total = [...this.#inFlight.values()].reduce((sum, one) => sum + one, bytes);
    return this.#inFlight.size === 0 || (this.#inFlight.size < IN_FLIGHT_MAX && total <= bytesMax);
  }

  #largest(): string | undefined {
    const [largest] = [...this.#inFlight].sort(([, one], [, other]) => other - one);
    return largest?.[0];
  }

  /** Results have a route that takes more; any other message is rejected. */
  #sendOverHttp({ type, payload, signal, resolve, reject }: Unanswered, tooLarge: Error): void {
    if (type !== ToolEventType.TOOL_COMPLETED && type !== ToolEventType.TOOL_ERROR) {
      reject(tooLarge);
      return;
    }
    const path = `/v1/spaces/${encodeURIComponent(this.#space)}/tool-results`;
    this.#gateway
      .json(path, { method: 'POST', body: payload, safe: true, ...(signal ? { signal } : {}) })
      .then(resolve, reject);
  }
}
