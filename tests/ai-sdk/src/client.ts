import { setImmediate as nextTick } from 'node:timers/promises';
import { Recorder } from './recorder.ts';
import type { ChatOfAnyMajor, Dialect, Message, Part, Sdk } from './sdk.ts';
import { asBackend, type World } from './world.ts';

/** Turns of the event loop in which a client that wants to send again has begun to. */
const TICKS_AT_REST = 20;

export interface ClientOptions {
  agent?: string;
  chatId?: string;
  /** Asked for in the address; `default` asks for nothing. */
  dialect?: Dialect | 'default';
  /** Members of every request's body. */
  body?: object;
  headers?: Record<string, string>;
  /** What the client runs; tools without an entry stay open. */
  execute?: Record<string, (input: unknown) => unknown>;
  /** More of the transport's options. */
  transport?: object;
  messages?: Message[];
  /** When the client goes on by itself, instead of the SDK's own helpers. */
  sendAutomaticallyWhen?: (options: { messages: Message[] }) => boolean;
  /** What it read is not for the first release of its major. */
  strict?: boolean;
  /** Where the gateway is, when not where the world says. */
  url?: string;
}

/** A chat of the real SDK against the real gateway, with everything that goes over the wire written down. */
export class Client {
  readonly recorder: Recorder;
  readonly chat: ChatOfAnyMajor;
  /** Tools that the SDK told the client to run, in order. */
  readonly ran: Array<{ tool: string; input: unknown; toolCallId: string }> = [];
  readonly transient: Array<{ type: string; data: unknown }> = [];
  #running = 0;

  constructor(sdk: Sdk, world: World, options: ClientOptions = {}) {
    this.recorder = new Recorder(options.headers ?? asBackend(world.gateway));
    const base = (options.url ?? world.gateway.url) + pathOf(options.agent);
    const query = options.dialect === 'default' ? '' : `?dialect=${options.dialect ?? sdk.dialect}`;
    this.chat = new sdk.Chat({
      id: options.chatId ?? crypto.randomUUID(),
      messages: options.messages,
      transport: new sdk.DefaultChatTransport({
        api: base + query,
        body: options.body,
        fetch: this.recorder.fetch,
        prepareReconnectToStreamRequest: ({ id }: { id: string }) => ({
          api: `${base}/${encodeURIComponent(id)}/stream${query}`,
        }),
        ...options.transport,
      }),
      sendAutomaticallyWhen: options.sendAutomaticallyWhen ?? sdk.sendAutomaticallyWhen,
      onData: (part: { type: string; data: unknown }) => this.transient.push(part),
      onToolCall: ({ toolCall }: { toolCall: { toolName: string; toolCallId: string; input: unknown } }) => {
        const { toolName: tool, toolCallId, input } = toolCall;
        this.ran.push({ tool, input, toolCallId });
        const execute = options.execute?.[tool];
        if (execute) void this.#run(tool, toolCallId, async () => execute(input));
      },
    });
  }

  /** Not awaited by `onToolCall`: the SDK would wait for itself. */
  async #run(tool: string, toolCallId: string, execute: () => Promise<unknown>): Promise<void> {
    this.#running += 1;
    try {
      const output = await execute();
      await this.chat.addToolOutput({ tool, toolCallId, output });
    } catch (error) {
      const errorText = (error as Error).message;
      await this.chat.addToolOutput({ tool, toolCallId, state: 'output-error', errorText });
    } finally {
      this.#running -= 1;
    }
  }

  /** Says something and waits until nothing moves any more. */
  async say(text: string): Promise<void> {
    await this.chat.sendMessage({ text });
    await this.rest();
  }

  /** Resolves when no request is under way and the client begins none by itself. */
  async rest(): Promise<void> {
    for (let quiet = 0; quiet < TICKS_AT_REST; quiet += 1) {
      const open = this.recorder.exchanges.find((exchange) => !exchange.ended);
      if (open) await open.over;
      if (open || this.#running > 0 || !['ready', 'error'].includes(this.chat.status)) quiet = 0;
      await nextTick();
    }
  }

  get posts(): number {
    return this.recorder.posts.length;
  }
  get messages(): Message[] {
    return this.chat.messages;
  }
  /** The last message, which must be the agent's. */
  get answer(): Message {
    const last = this.chat.messages.at(-1);
    if (last?.role !== 'assistant') throw new Error(`no answer: ${JSON.stringify(this.chat.messages)}`);
    return last;
  }
  /** The answer's words; one piece for each part. */
  get words(): string[] {
    return this.answer.parts.flatMap((part) => (part.type === 'text' && part.text ? [part.text] : []));
  }
  /** The answer's calls of one tool. */
  calls(tool: string): Part[] {
    return this.answer.parts.filter((part) => part.type === `tool-${tool}`);
  }
  /** The answer's only call of a tool. */
  call(tool: string): Part {
    const [call, ...more] = this.calls(tool);
    if (!call || more.length > 0) throw new Error(`not one ${tool}: ${JSON.stringify(this.answer.parts)}`);
    return call;
  }
  /** The run that the answer tells of. */
  get runId(): string {
    const run = this.answer.parts.findLast((part) => part.type === 'data-run');
    return String(run?.data?.runId);
  }
}

function pathOf(agent: string | undefined): string {
  return agent === undefined ? '/api/chat' : `/v1/agents/${agent}/chat`;
}
