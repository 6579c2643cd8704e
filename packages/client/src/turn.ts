import { CallRunner, type Fate } from './call-runner.js';
import { Channel } from './channel.js';
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
import type { Approvals } from './resources.js';
import { StreamedWords, type Words } from './streamed-words.js';
import { Told } from './told.js';
import type { ToolCall } from './tool.js';
import { readToolCall } from './tool-call.js';
import type { Tools } from './tools.js';
import type {
  Event,
  Placement,
  Status,
  ToolOutputAvailableEvent,
  ToolOutputDeniedEvent,
  ToolOutputErrorEvent,
} from './wire.js';

/** How often a client runs tools for one chat, unless told otherwise. */
const TOOL_ROUNDS = 5;

/** What a chat needs of its client. */
export interface ChatHost {
  connection: Connection;
  registry: PluginRegistry;
  conversations: Conversations;
  tools: Tools;
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
   * Who runs it: the gateway (`elsewhere`), nobody before a person has said yes (`asked`), this client (`here`; its
   * result is handed in: `ours`), another client (`held`), nobody that we know of (`left`).
   */
  state: 'elsewhere' | 'asked' | 'here' | 'ours' | 'held' | 'left';
  stop?: AbortController;
  /** It was released while we asked for it. */
  released?: boolean;
}

type News =
  | { event: Event }
  | { chunk: Chunk }
  | { fate: Fate; callId: string }
  | { ended: true }
  | { failed: unknown };

/** One run, watched from its start until it ends or waits for somebody else. */
export class Turn {
  readonly #host: ChatHost;
  readonly #options: ChatOptions;
  readonly #opened: Opened;
  readonly #runner: CallRunner;
  readonly #news = new Channel<News>();
  readonly #stop = new AbortController();
  readonly #calls = new Map<string, OpenCall>();
  readonly #approvals = new Map<string, ApprovalRequest>();
  readonly #words = new StreamedWords();
  readonly #told: Told;
  #status: Status = 'queued';
  #step = 0;
  #rounds = 0;
  #roundOfStep = -1;

  constructor(host: ChatHost, options: ChatOptions, opened: Opened) {
    this.#host = host;
    this.#options = options;
    this.#opened = opened;
    this.#runner = new CallRunner(host.tools, host.log);
    this.#told = new Told(opened.runId, opened.spaceId);
    const { signal } = options;
    if (signal?.aborted) this.stop();
    signal?.addEventListener('abort', () => this.stop(), { once: true, signal: this.#stop.signal });
  }

  stop(): void {
    this.#stop.abort();
    const { body } = this.#opened.response;
    // A stream that nobody has begun to read has nobody else to close it.
    if (body && !body.locked) body.cancel().catch(() => {});
  }

  async *chunks(): AsyncGenerator<Chunk, ChatResult, void> {
    const { runId, spaceId } = this.#opened;
    yield { type: 'start', value: { runId, spaceId } };
    this.#pump();
    for (;;) {
      const news = await this.#news.take();
      if ('failed' in news) throw this.#errorOf(news.failed);
      if ('ended' in news) throw new ProtocolError(CODES.protocol, 'the stream ended before the run did');
      for (const chunk of this.#chunksOf(news)) {
        this.#told.note(chunk);
        yield chunk;
      }
      const finish = this.#finishOf(news);
      if (finish) return yield* this.#finish(finish);
    }
  }

  async *#finish(finish: Finish): AsyncGenerator<Chunk, ChatResult, void> {
    const result = this.#told.result(finish);
    await this.#host.registry.afterResponse(result);
    this.#host.onFinish(result);
    yield { type: 'finish', value: finish };
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
    else if ('fate' in news) this.#settleFate(news.callId, news.fate);
    else if ('event' in news) yield* this.#chunksOfEvent(news.event);
  }

  *#chunksOfEvent(event: Event): Generator<Chunk, void, void> {
    switch (event.type) {
      case 'step-start':
        this.#step = event.step;
        this.#words.reset();
        yield { type: 'step', value: { step: event.step } };
        break;
      case 'step-retry':
        this.#words.reset();
        yield { type: 'retry', value: { step: event.step } };
        break;
      case 'text-start':
        yield* this.#say(this.#words.start('text', event.id));
        break;
      case 'text-delta':
        yield* this.#say(this.#words.delta('text', event.id, event.delta));
        break;
      case 'text-end':
        yield* this.#say(this.#words.end('text', event.id, event.text));
        break;
      case 'reasoning-start':
        yield* this.#say(this.#words.start('reasoning', event.id));
        break;
      case 'reasoning-delta':
        yield* this.#say(this.#words.delta('reasoning', event.id, event.delta));
        break;
      case 'reasoning-end':
        yield* this.#say(this.#words.end('reasoning', event.id, event.text));
        break;
      case 'tool-input-available': {
        const { toolCallId, toolName, input, runId, spaceId, deadline, placement } = event;
        const call = {
          ...readToolCall({ toolCallId, toolName, input: input ?? {}, runId, spaceId, deadline }),
          placement,
        };
        // A call of ours with no deadline is not offered: it was refused, or a person is asked first.
        const state = placement !== 'client' ? 'elsewhere' : deadline === undefined ? 'asked' : 'left';
        this.#calls.set(toolCallId, { call, state });
        yield { type: 'tool_call', value: call };
        if (state === 'left') this.#consider(toolCallId);
        break;
      }
      case 'tool-approval-request': {
        const { approvalId, toolCallId, toolName, input, expiresAt } = event;
        const request = { approvalId, toolCallId, toolName, input, expiresAt };
        this.#approvals.set(approvalId, request);
        this.#decide(request);
        yield { type: 'approval', value: request };
        break;
      }
      case 'tool-approval-response': {
        const { approvalId, toolCallId, approved, reason, input } = event;
        this.#approvals.delete(approvalId);
        // What the run waited for has come; it says by itself what is next.
        this.#status = 'running';
        const open = this.#calls.get(toolCallId);
        if (open && approved && open.call.placement === 'client') {
          if (input !== undefined) open.call = { ...open.call, args: input as Record<string, unknown> };
          open.state = 'left';
          this.#consider(toolCallId);
        }
        yield {
          type: 'approval_decided',
          value: { approvalId, toolCallId, approved, ...(reason ? { reason } : {}) },
        };
        break;
      }
      case 'tool-released':
        this.#consider(event.toolCallId);
        break;
      case 'tool-progress': {
        const { toolCallId, toolName, progress } = event;
        yield { type: 'tool_progress', value: { toolCallId, toolName, progress } };
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
        // The rest tells a chat nothing; a newer gateway may know more.
        break;
    }
  }

  *#say(words: Words[]): Generator<Chunk, void, void> {
    for (const word of words) yield word === 'void' ? { type: 'retry', value: { step: this.#step } } : word;
  }

  /** A call has settled, here or elsewhere: whatever still runs for it may stop. */
  #resultOf(event: ToolOutputAvailableEvent | ToolOutputErrorEvent | ToolOutputDeniedEvent): ToolResult {
    const { toolCallId, toolName } = event;
    const open = this.#calls.get(toolCallId);
    this.#calls.delete(toolCallId);
    const local = open?.state === 'here' || open?.state === 'ours';
    open?.stop?.abort();
    if (event.type === 'tool-output-available') {
      return { toolCallId, toolName, local, ...('output' in event ? { result: event.output } : {}) };
    }
    const error =
      event.type === 'tool-output-error'
        ? (event.errorText ?? event.code ?? 'failed')
        : (event.reason ?? 'a person said no');
    return { toolCallId, toolName, local, error, result: { error } };
  }

  /** Runs an open call, if it is ours to run. */
  #consider(callId: string): void {
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
      // Stopped because the call has settled: the event has told it.
      if (failed instanceof AbortedError && !this.#stop.signal.aborted) return;
      this.#news.push({ failed });
    }
  }

  #settleFate(callId: string, fate: Fate): void {
    const open = this.#calls.get(callId);
    if (open?.state !== 'here') return;
    // The event that settles it is on its way, unless nobody runs it.
    open.state = fate === 'held' ? 'held' : fate === 'declined' ? 'left' : 'ours';
    // Released while we asked for it: then the answer is old.
    if (fate === 'held' && open.released) this.#consider(callId);
  }

  async #decide(request: ApprovalRequest): Promise<void> {
    const { onApproval } = this.#options;
    if (!onApproval) return;
    try {
      const decision = await onApproval(request);
      await this.#host.approvals.decide(request.approvalId, decision, { signal: this.#stop.signal });
    } catch (failed) {
      // Somebody else was faster, or it is too late: the events say which.
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
    if (this.#approvals.size === 0)
      return waitForTools ? undefined : { reason: 'tool-calls', status, pending };
    return onApproval || waitForApproval ? undefined : { reason: 'approval', status, pending };
  }
}
