import { pause, retryDelay } from './back-off.js';
import { callHandler } from './call-handler.js';
import type { Connection } from './connection.js';
import { AbortedError, CODES, ToolgateError, UnavailableError, ValidationError } from './error.js';
import { RtcConnection } from './rtc-connection.js';
import { RtcOutbox } from './rtc-outbox.js';
import { type ChannelNotice, type ToolDataChannelMessage, ToolEventType } from './tool-message.js';
import type { ToolOutcome } from './tools.js';
import type { Claimed, Decided, Receipt } from './wire.js';

/** Messages that wait for a slow reader. Beyond it the connection is closed until the reader has caught up. */
const WAITING_MAX = 1024;
/** Stands for the name of a tool that is not known. */
const ANY_TOOL = '*';
/** A connection that lasted this long has not failed: the back-off begins anew. */
const STEADY_MS = 30_000;

/** Options of `spaces.connectRtc`. */
export interface RtcOptions {
  /** The cursor: `seq` of the last message that was read; all messages if not set. */
  after?: number;
  /** Closes the channel. */
  signal?: AbortSignal;
  /** Called for every message, in order. With it the channel cannot be iterated. */
  onMessage?: (message: ToolDataChannelMessage) => void;
  /** Called when the channel is open; also after each reconnect. */
  onOpen?: () => void;
  /** Called when the connection is cut and will be opened again. */
  onCut?: () => void;
  /** Called with the error that ends the channel. */
  onError?: (error: unknown) => void;
  /** Options of each `RTCPeerConnection`. The gateway needs none. */
  configuration?: RTCConfiguration;
}

/** Options of one message. */
export interface SendOptions {
  /** Stops waiting for the answer; what was sent may still be stored. */
  signal?: AbortSignal;
}

/** A proposal or a call: its message, or its id. */
export type Reference = ToolDataChannelMessage | string;

/**
 * The tool events of a space over a WebRTC data channel, and decisions and results the other way. Reconnects from the
 * cursor after any cut, with exponential back-off: nothing is lost and nothing is repeated. A message that was not answered
 * is sent again; the gateway stores it once.
 */
export class RtcChannel implements AsyncIterable<ToolDataChannelMessage> {
  readonly #gateway: Connection;
  readonly #space: string;
  readonly #options: RtcOptions;
  readonly #stop: AbortController = new AbortController();
  readonly #outbox: RtcOutbox;
  readonly #queue: ToolDataChannelMessage[] = [];
  #wakeReader: (() => void) | undefined;
  #drained: (() => void) | undefined;
  #connection: RtcConnection | undefined;
  #cursor: number | undefined;
  #failure: unknown;
  /** Cuts and failed attempts since the gateway last answered a message. */
  #failures = 0;
  /** Something was left out behind a slow reader: nothing more is taken from this connection. */
  #overflowed = false;

  constructor(gateway: Connection, space: string, options: RtcOptions = {}) {
    this.#gateway = gateway;
    this.#space = space;
    this.#options = options;
    this.#outbox = new RtcOutbox(gateway, space);
    this.#cursor = options.after;
    if (options.signal?.aborted) this.close();
    else
      options.signal?.addEventListener('abort', () => this.close(), {
        once: true,
        signal: this.#stop.signal,
      });
    this.#run();
  }

  /** The cursor: pass it as `after` to resume later. */
  get cursor(): number | undefined {
    return this.#queue[0]?.seq === undefined ? this.#cursor : this.#queue[0].seq - 1;
  }

  /** Whether the channel was closed or has failed. */
  get closed(): boolean {
    return this.#stop.signal.aborted;
  }

  /**
   * Accepts a proposal, with another input when given. `remember: false` makes a yes that would stand for later calls too one
   * for this call alone. The same decision again gets the same receipt.
   */
  async accept(
    proposal: Reference,
    options: SendOptions & { input?: unknown; remember?: boolean } = {},
  ): Promise<Decided> {
    const { input, remember } = options;
    const payload = {
      approvalId: idOf(proposal, 'approvalId'),
      ...(input === undefined ? {} : { input }),
      ...(remember === undefined ? {} : { remember }),
    };
    return this.#ask(ToolEventType.TOOL_ACCEPTED, proposal, payload, options);
  }

  /** Rejects a proposal; the model is told the reason. */
  async reject(proposal: Reference, options: SendOptions & { reason?: string } = {}): Promise<Decided> {
    const { reason } = options;
    const payload = { approvalId: idOf(proposal, 'approvalId'), ...(reason === undefined ? {} : { reason }) };
    return this.#ask(ToolEventType.TOOL_REJECTED, proposal, payload, options);
  }

  /** Claims an offered call, so that nobody else executes it too; again, to keep the claim. The receipt has the input. */
  async claim(
    call: Reference,
    options: SendOptions & { holder: string; leaseSeconds?: number },
  ): Promise<Claimed> {
    const { holder, leaseSeconds } = options;
    const toolCallId = idOf(call, 'toolCallId');
    const payload = { toolCallId, holder, ...(leaseSeconds === undefined ? {} : { leaseSeconds }) };
    return this.#ask(ToolEventType.TOOL_EXECUTING, call, payload, options);
  }

  /** Gives a claimed call back: it is offered again. */
  async release(call: Reference, options: SendOptions & { holder: string }): Promise<void> {
    const payload = { toolCallId: idOf(call, 'toolCallId'), holder: options.holder };
    return this.#ask(ToolEventType.TOOL_REJECTED, call, payload, options);
  }

  /** Tells the space how far a call is: any JSON. */
  async progress(call: Reference, progress: unknown, options: SendOptions = {}): Promise<void> {
    const payload = { toolCallId: idOf(call, 'toolCallId'), progress: progress ?? null };
    return this.#ask(ToolEventType.TOOL_EXECUTING, call, payload, options);
  }

  /** Submits the result or the error of a call. One that is too large for the channel is sent over HTTP. */
  async submitResult(call: Reference, outcome: ToolOutcome, options: SendOptions = {}): Promise<Receipt> {
    const toolCallId = idOf(call, 'toolCallId');
    return 'error' in outcome
      ? this.#ask(ToolEventType.TOOL_ERROR, call, { toolCallId, error: outcome.error }, options)
      : this.#ask(
          ToolEventType.TOOL_COMPLETED,
          call,
          { toolCallId, result: outcome.result ?? null },
          options,
        );
  }

  /** Closes the channel. Messages that were not answered are rejected with an `AbortedError`. */
  close(): void {
    if (this.closed) return;
    this.#stop.abort();
    this.#connection?.close();
    this.#outbox.fail(this.#failure ?? new AbortedError(CODES.aborted, 'the channel was closed'));
    this.#wakeReader?.();
    this.#drained?.();
  }

  /** Messages in order. Ends when the channel is closed; throws the error that ends it otherwise. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ToolDataChannelMessage, void, void> {
    for (;;) {
      const message = this.#queue.shift();
      if (message !== undefined) {
        yield message;
        continue;
      }
      this.#drained?.();
      if (this.#failure !== undefined) throw this.#failure;
      if (this.closed) return;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  async #run(): Promise<void> {
    while (!this.closed) {
      let openedAt = Number.POSITIVE_INFINITY;
      try {
        await this.#caughtUp();
        this.#overflowed = false;
        const connection = await RtcConnection.open(this.#gateway, {
          path: `/v1/spaces/${encodeURIComponent(this.#space)}/rtc`,
          after: this.#cursor,
          signal: this.#stop.signal,
          configuration: this.#options.configuration,
          onMessage: (message) => this.#take(message),
          onNotice: (notice) => this.#note(notice),
        });
        openedAt = Date.now();
        this.#connection = connection;
        if (this.closed || this.#overflowed) connection.close();
        else callHandler(this.#options.onOpen);
        this.#outbox.connect(connection);
        await connection.cut;
        connection.close();
      } catch (error) {
        if (this.closed) return;
        const passes =
          error instanceof UnavailableError || !(error instanceof ToolgateError) || error.retryable;
        if (!passes) return this.#fail(error);
      }
      this.#connection = undefined;
      this.#outbox.connect(undefined);
      if (this.closed) return;
      // An open channel proves little: what is sent over it may be what cuts it, each time.
      if (this.#overflowed || Date.now() - openedAt >= STEADY_MS) this.#failures = 0;
      this.#failures += 1;
      callHandler(this.#options.onCut);
      await pause(retryDelay(this.#failures), this.#stop.signal);
    }
  }

  #fail(error: unknown): void {
    this.#failure = error;
    callHandler(() => this.#options.onError?.(error));
    this.close();
  }

  #take(message: ToolDataChannelMessage): void {
    if (this.closed) return;
    if (message.seq !== undefined) {
      if (this.#cursor !== undefined && message.seq <= this.#cursor) return;
      // Behind a reader that is too slow nothing is kept: the gateway sends it again on the next connection.
      if (this.#queue.length >= WAITING_MAX) this.#overflowed = true;
      if (this.#overflowed) {
        this.#connection?.close();
        return;
      }
      this.#cursor = message.seq;
    }
    const { onMessage } = this.#options;
    if (onMessage) {
      callHandler(() => onMessage(message));
      return;
    }
    this.#queue.push(message);
    this.#wakeReader?.();
  }

  #note(notice: ChannelNotice): void {
    if (notice.type === 'CHANNEL_CURSOR' && notice.seq !== undefined && !this.#overflowed)
      this.#cursor = notice.seq;
    if (this.#outbox.answer(notice)) this.#failures = 0;
  }

  /** Waits until a reader that was too slow has read everything that waits. */
  async #caughtUp(): Promise<void> {
    if (this.#queue.length < WAITING_MAX) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  #ask<T>(
    type: ToolEventType,
    about: Reference,
    payload: Record<string, unknown>,
    options: SendOptions,
  ): Promise<T> {
    if (this.closed) {
      return Promise.reject(this.#failure ?? new AbortedError(CODES.aborted, 'the channel is closed'));
    }
    return this.#outbox.ask({ type, toolId: toolOf(about), payload, signal: options.signal });
  }
}

/** The id that a message names, or the id itself. */
function idOf(about: Reference, member: 'approvalId' | 'toolCallId'): string {
  if (typeof about === 'string') return about;
  const id = about.payload?.[member];
  if (typeof id === 'string') return id;
  throw new ValidationError(
    CODES.validation,
    `the message ${about.type} of ${about.toolId} has no ${member}`,
  );
}

/** The name of the tool, which the gateway compares with that of the call; left open where an id alone is given. */
function toolOf(about: Reference): string {
  return typeof about === 'string' ? ANY_TOOL : about.toolId;
}
