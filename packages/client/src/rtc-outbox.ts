import type { Connection } from './connection.js';
import { AbortedError, CODES, errorOfProblem, ValidationError } from './error.js';
import { type ChannelNotice, createToolMessage, serializeMessage, ToolEventType } from './tool-message.js';
import type { Problem } from './wire.js';

/** Code of a message that has more bytes than the gateway reads. */
const TOO_LARGE = 'MESSAGE_TOO_LARGE';

/** The open channel, as far as messages need it. */
export interface RtcOutlet {
  /** Bytes of one message. */
  readonly bytesMax: number;
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
  resolve: (payload: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * Messages that the gateway has not answered. They wait for a connection, are sent again on the next one after a cut, and
 * go over HTTP if they are results that are too large for the channel.
 */
export class RtcOutbox {
  readonly #gateway: Connection;
  readonly #space: string;
  readonly #unanswered = new Map<string, Unanswered>();
  #outlet: RtcOutlet | undefined;
  #number = 0;

  constructor(gateway: Connection, space: string) {
    this.#gateway = gateway;
    this.#space = space;
  }

  /** Sends a message now or on the next connection. Resolves with the receipt; rejects with the problem. */
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
        resolve: (receipt) => {
          heard();
          resolve(receipt as T);
        },
        reject: (error) => {
          heard();
          reject(error);
        },
      });
      this.#send(id);
    });
  }

  /** Sends everything that waits over a new connection; `undefined` when it was cut. */
  connect(outlet: RtcOutlet | undefined): void {
    this.#outlet = outlet;
    for (const id of [...this.#unanswered.keys()]) this.#send(id);
  }

  /** Takes the gateway's answer to a message. False if the notice is none. */
  answer({ type, id, payload }: ChannelNotice): boolean {
    if (type !== 'CHANNEL_RECEIPT' && type !== 'CHANNEL_PROBLEM') return false;
    const problem = payload as unknown as Problem;
    const isTooLarge = type === 'CHANNEL_PROBLEM' && problem?.code === TOO_LARGE;
    // A text that the gateway did not read has no id for it. Whatever its limit is, the largest message is beyond it.
    const about = id ?? (isTooLarge ? this.#largest() : undefined);
    const message = about === undefined ? undefined : this.#unanswered.get(about);
    if (about === undefined || message === undefined) return false;
    this.#unanswered.delete(about);
    if (isTooLarge) this.#sendOverHttp(message, errorOfProblem(problem));
    else if (type === 'CHANNEL_RECEIPT') message.resolve(payload);
    else message.reject(errorOfProblem(problem));
    return true;
  }

  /** Rejects everything that waits. */
  fail(error: unknown): void {
    for (const { reject } of this.#unanswered.values()) reject(error);
    this.#unanswered.clear();
  }

  /** The limit is known only now: each connection has its own. */
  #send(id: string): void {
    const message = this.#unanswered.get(id);
    if (this.#outlet === undefined || message === undefined) return;
    const { bytesMax } = this.#outlet;
    if (message.bytes <= bytesMax) {
      this.#outlet.send(message.text);
      return;
    }
    this.#unanswered.delete(id);
    const words = `the message has ${message.bytes} bytes, more than the ${bytesMax} that the gateway reads`;
    this.#sendOverHttp(message, new ValidationError(TOO_LARGE, words));
  }

  #largest(): string | undefined {
    let largest: { id: string; bytes: number } | undefined;
    for (const [id, { bytes }] of this.#unanswered)
      if (largest === undefined || bytes > largest.bytes) largest = { id, bytes };
    return largest?.id;
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
