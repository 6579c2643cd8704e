import { CallEnded, CallRunner, type Fate } from './call-runner.js';
import { Channel } from './channel.js';
import { ChatResultBuilder } from './chat-result.js';
import type {
  ApprovalRequest,
  ChatOptions,
  ChatResult,
  Chunk,
  Finish,
  ToolEnd,
  ToolResult,
} from './chunk.js';
import { aborted, type Connection } from './connection.js';
import type { Conversations } from './conversations.js';
import { AbortedError, CODES, ConflictError, GoneError, ProtocolError } from './error.js';
import { follow } from './event-stream.js';
import type { PluginRegistry } from './plugin-registry.js';
import type { Approvals, Runs, Spaces } from './resources.js';
import { StreamedText, type TextPiece } from './streamed-text.js';
import type { ToolCall } from './tool.js';
import { nameOf, readToolCall } from './tool-call.js';
import type { Tools } from './tools.js';
import type {
  Event,
  Placement,
  Status,
  ToolOutputAvailableEvent,
  ToolOutputDeniedEvent,
  ToolOutputErrorEvent,
} from './wire.js';

/** Default of `maxToolRounds`. */
const TOOL_ROUNDS = 5;

/** What a chat needs of its client. */
export interface ChatHost {
  connection: Connection;
  registry: PluginRegistry;
  conversations: Conversations;
  tools: Tools;
  runs: Runs;
  spaces: Spaces;
  approvals: Approvals;
  holder: string;
  agent: string | undefined;
  ready(): Promise<void>;
  log(line: string): void;
  onToolStart(call: ToolCall): void;
  onToolEnd(end: ToolEnd): void;
  onFinish(result: ChatResult): void;
}

/** A run that was started, and its stream. */
export interface Opened {
  response: Response;
  runId: string;
  spaceId: string;
}

/** An open call. */
interface OpenCall {
  call: ToolCall & { placement: Placement };
  /**
   * Who executes it: the gateway (`elsewhere`), nobody before the approval (`asked`), this client (`here`;
   * after its result was posted: `ours`), another client (`held`), nobody that we know of (`left`).
   */
  state: 'elsewhere' | 'asked' | 'here' | 'ours' | 'held' | 'left';
  stop?: AbortController;
  /** Whether it was released while our claim was under way. */
  released?: boolean;
}

type News =
  | { event: Event }
  | { chunk: Chunk }
  | { fate: Fate; callId: string }
  | { ended: true }
  | { failed: unknown };

/** One run, followed from its start until it ends or waits for somebody else. */
export class Turn {
  readonly #host: ChatHost;
  readonly #options: ChatOptions;
  readonly #opened: Opened;
  readonly #runner: CallRunner;
  readonly #news = new Channel<News>();
  readonly #stop = new AbortController();
  readonly #calls = new Map<string, OpenCall>();
  readonly #approvals = new Map<string, ApprovalRequest>();
  /** Questions of tools that nobody has answered, with their calls. */
  readonly #questions = new Map<string, string>();
  readonly #text = new StreamedText();
  readonly #result: ChatResultBuilder;
  #status: Status = 'queued';
  #step = 0;
  #rounds = 0;
  #roundOfStep = -1;

  constructor(host: ChatHost, options: ChatOptions, opened: Opened) {
    this.#host = host;
    this.#options = options;
    this.#opened = opened;
    this.#runner = new CallRunner(host, host.log);
    this.#result = new ChatResultBuilder(opened.runId, opened.spaceId);
    const { signal } = options;
    if (signal?.aborted) this.stop();
    signal?.addEventListener('abort', () => this.stop(), { once: true, signal: this.#stop.signal });
  }

  stop(): void {
    this.#stop.abort();
    const { body } = this.#opened.response;
    // Nobody else cancels a body that was never read.
    if (body && !body.locked) body.cancel().catch(() => {});
  }

  async *chunks(): AsyncGenerator<Chunk, ChatResult, void> {
    const { runId, spaceId } = this.#opened;
    yield { type: 'start', value: { runId, spaceId } };
    this.#pump();
    for (;;) {
      const news = await this.#news.take();
      if ('failed' in news) throw this.#errorOf(news.failed);
      if ('ended' in news) throw new ProtocolError(CODES.protocol, 'the stream ended before the run');
      for (const chunk of this.#chunksOf(news)) {
        this.#result.add(chunk);
        yield chunk;
      }
      const finish = this.#finishOf(news);
      if (finish) return yield* this.#finish(finish);
    }
  }

  /** The last chunk. A plugin whose hook fails ends the stream with its error, after everybody has been told the end. */
  async *#finish(finish: Finish): AsyncGenerator<Chunk, ChatResult, void> {
    const result = this.#result.result(finish);
    const failure = await this.#host.registry.afterResponse(result).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    this.#host.onFinish(result);
    yield { type: 'finish', value: finish };
    if (failure) throw failure.error;
    return result;
  }

  #errorOf(error: unknown): unknown {
    const { signal } = this.#options;
    return error instanceof AbortedError && signal?.aborted ? aborted(signal) : error;
  }

  async #pump(): Promise<void> {
    const { runId, response } = this.#opened;
    const path = `/v1/runs/${runId}/events`;
    try {
      const events = follow(this.#host.connection, { path, opened: response, signal: this.#stop.signal });
      for await (const event of events) {
        this.#news.push({ event });
        await this.#news.room();
      }
      this.#news.push({ ended: true });
    } catch (failed) {
      this.#news.push({ failed });
    }
  }

  *#chunksOf(news: News): Generator<Chunk, void, void> {
    if ('chunk' in news) yield news.chunk;
    else if ('fate' in news) this.#handleFate(news.callId, news.fate);
    else if ('event' in news) yield* this.#chunksOfEvent(news.event);
  }

  *#chunksOfEvent(event: Event): Generator<Chunk, void, void> {
    switch (event.type) {
      case 'step-start':
        this.#step = event.step;
        this.#text.reset();
        yield { type: 'step', value: { step: event.step } };
        break;
      case 'step-retry':
        this.#text.reset();
        yield { type: 'retry', value: { step: event.step } };
        break;
      case 'text-start':
        yield* this.#textChunks(this.#text.start('text', event.id));
        break;
      case 'text-delta':
        yield* this.#textChunks(this.#text.delta('text', event.id, event.delta));
        break;
      case 'text-end':
        yield* this.#textChunks(this.#text.end('text', event.id, event.text));
        break;
      case 'reasoning-start':
        yield* this.#textChunks(this.#text.start('reasoning', event.id));
        break;
      case 'reasoning-delta':
        yield* this.#textChunks(this.#text.delta('reasoning', event.id, event.delta));
        break;
      case 'reasoning-end':
        yield* this.#textChunks(this.#text.end('reasoning', event.id, event.text));
        break;
      case 'tool-input-available': {
        const { toolCallId, toolName, givenName, input, runId, spaceId, deadline, placement } = event;
        const call = {
          ...readToolCall({ toolCallId, toolName, givenName, input: input ?? {}, runId, spaceId, deadline }),
          placement,
        };
        // A client call without a deadline is not open: it was rejected, or waits for approval.
        const open = this.#isForAnother(event.reserved) ? 'held' : 'left';
        const state = placement !== 'client' ? 'elsewhere' : deadline === undefined ? 'asked' : open;
        this.#calls.set(toolCallId, { call, state });
        yield { type: 'tool_call', value: call };
        if (state === 'left') this.#executeIfOurs(toolCallId);
        break;
      }
      case 'tool-approval-request': {
        const { approvalId, toolCallId, input, expiresAt } = event;
        const request = { approvalId, toolCallId, toolName: nameOf(event), input, expiresAt };
        this.#approvals.set(approvalId, request);
        this.#decide(request);
        yield { type: 'approval', value: request };
        break;
      }
      case 'tool-approval-response': {
        const { approvalId, toolCallId, approved, reason, input } = event;
        this.#approvals.delete(approvalId);
        // What the run waited for has arrived; its next status comes as an event.
        this.#status = 'running';
        const open = this.#calls.get(toolCallId);
        if (open && approved && open.call.placement === 'client') {
          if (input !== undefined) open.call = { ...open.call, args: input as Record<string, unknown> };
          open.state = this.#isForAnother(event.reserved) ? 'held' : 'left';
          if (open.state === 'left') this.#executeIfOurs(toolCallId);
        }
        yield {
          type: 'approval_decided',
          value: { approvalId, toolCallId, approved, ...(reason ? { reason } : {}) },
        };
        break;
      }
      case 'tool-question': {
        const { questionId, toolCallId, toolName, message, schema, url, expiresAt } = event;
        this.#questions.set(questionId, toolCallId);
        yield {
          type: 'question',
          value: { questionId, toolCallId, toolName, message, schema, expiresAt, ...(url ? { url } : {}) },
        };
        break;
      }
      case 'tool-question-response': {
        const { questionId, toolCallId, action } = event;
        this.#questions.delete(questionId);
        // What the run waited for may have arrived; its next status comes as an event.
        if (this.#questions.size === 0) this.#status = 'running';
        yield { type: 'question_answered', value: { questionId, toolCallId, action } };
        break;
      }
      case 'tool-released':
        this.#executeIfOurs(event.toolCallId);
        break;
      case 'tool-progress': {
        const { toolCallId, progress } = event;
        yield { type: 'tool_progress', value: { toolCallId, toolName: nameOf(event), progress } };
        break;
      }
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        yield { type: 'tool_result', value: this.#resultOf(event) };
        break;
      case 'step-finish': {
        const { step, reason, usage } = event;
        yield { type: 'step_finish', value: { step, reason, usage } };
        break;
      }
      case 'run-status':
        this.#status = event.status;
        break;
      default:
        // Other events do not concern a chat; a newer gateway may send more.
        break;
    }
  }

  *#textChunks(pieces: TextPiece[]): Generator<Chunk, void, void> {
    for (const piece of pieces)
      yield piece === 'void' ? { type: 'retry', value: { step: this.#step } } : piece;
  }

  /** A call has ended, here or elsewhere: an execution of it is cancelled. */
  #resultOf(event: ToolOutputAvailableEvent | ToolOutputErrorEvent | ToolOutputDeniedEvent): ToolResult {
    const { toolCallId } = event;
    const toolName = nameOf(event);
    const open = this.#calls.get(toolCallId);
    this.#calls.delete(toolCallId);
    for (const [questionId, callId] of this.#questions)
      if (callId === toolCallId) this.#questions.delete(questionId);
    const local = open?.state === 'here' || open?.state === 'ours';
    open?.stop?.abort(new CallEnded());
    if (event.type === 'tool-output-available') {
      const { warning } = event;
      const result = 'output' in event ? { result: event.output } : {};
      return { toolCallId, toolName, local, ...result, ...(warning ? { warning } : {}) };
    }
    const error =
      event.type === 'tool-output-error'
        ? (event.errorText ?? event.code ?? 'failed')
        : (event.reason ?? 'the call was rejected');
    return { toolCallId, toolName, local, error, result: { error } };
  }

  /** Whether another client is offered the call first: the one that sent the newest message. */
  #isForAnother(reserved: { holder: string } | undefined): boolean {
    return reserved !== undefined && reserved.holder !== this.#host.holder;
  }

  /** Executes an open call, if it is for this client. */
  #executeIfOurs(callId: string): void {
    const open = this.#calls.get(callId);
    if (!open || open.state === 'elsewhere') return;
    if (open.state === 'here') {
      open.released = true;
      return;
    }
    const { onToolCall, maxToolRounds = TOOL_ROUNDS } = this.#options;
    const { registry } = this.#host;
    open.state = 'left';
    if (!onToolCall && !registry.handles(open.call.toolName)) return;
    if (this.#roundOfStep !== this.#step) {
      this.#roundOfStep = this.#step;
      this.#rounds += 1;
    }
    if (maxToolRounds > 0 && this.#rounds > maxToolRounds) {
      this.#host.log(`call ${callId}: the limit of ${maxToolRounds} tool rounds is reached`);
      return;
    }
    open.state = 'here';
    open.released = false;
    open.stop = new AbortController();
    this.#run(open.call, AbortSignal.any([this.#stop.signal, open.stop.signal]));
  }

  async #run(call: ToolCall, signal: AbortSignal): Promise<void> {
    const { onToolCall } = this.#options;
    const { registry, holder } = this.#host;
    const timeoutMs = registry.timeoutOf(call.toolName);
    const { toolCallId: callId } = call;
    try {
      const fate = await this.#runner.run({
        call,
        holder,
        signal,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        execute: (given, context) =>
          onToolCall ? onToolCall(given, context) : registry.execute(given, context),
        onStart: (started) => this.#host.onToolStart(started),
        onEnd: (end) => {
          this.#host.onToolEnd(end);
          this.#news.push({ chunk: { type: 'tool_end', value: end } });
        },
      });
      this.#news.push({ callId, fate });
    } catch (failed) {
      // Cancelled because the call has ended: its event has reported that.
      if (failed instanceof AbortedError && !this.#stop.signal.aborted) return;
      this.#news.push({ failed });
    }
  }

  #handleFate(callId: string, fate: Fate): void {
    const open = this.#calls.get(callId);
    if (open?.state !== 'here') return;
    // The event that ends it will follow, unless nobody executes it.
    open.state = fate === 'held' ? 'held' : fate === 'declined' ? 'left' : 'ours';
    // It was released while our claim was under way: then that answer is outdated.
    if (fate === 'held' && open.released) this.#executeIfOurs(callId);
  }

  async #decide(request: ApprovalRequest): Promise<void> {
    const { onApproval } = this.#options;
    if (!onApproval) return;
    try {
      const decision = await onApproval(request);
      await this.#host.approvals.decide(request.approvalId, decision, { signal: this.#stop.signal });
    } catch (failed) {
      // Another decision was first, or it is too late: the events say which.
      if (failed instanceof ConflictError || failed instanceof GoneError) return;
      this.#news.push({ failed });
    }
  }

  #finishOf(news: News): Finish | undefined {
    const pending = [...this.#calls.values()].map(({ call }) => call);
    if ('event' in news && news.event.type === 'run-finish') {
      const { reason, status, usage, error } = news.event;
      return { reason, status, usage, pending, ...(error === undefined ? {} : { error }) };
    }
    const status = this.#status;
    if (status !== 'waiting_tool' && status !== 'waiting_approval') return undefined;
    const open = [...this.#calls.values()];
    const underWay = open.some(({ state }) => state === 'here' || state === 'ours' || state === 'held');
    if (open.length === 0 || underWay) return undefined;
    const { onApproval, waitForApproval = true, waitForTools = false } = this.#options;
    if (this.#questions.size > 0 && !waitForApproval) return { reason: 'approval', status, pending };
    if (this.#questions.size > 0) return undefined;
    if (this.#approvals.size === 0)
      return waitForTools ? undefined : { reason: 'tool-calls', status, pending };
    return onApproval || waitForApproval ? undefined : { reason: 'approval', status, pending };
  }
}
