import type { ToolgateClient, wire } from '@toolgate/client';
import type { Connection, ConversationSnapshot } from './conversation-store.js';
import { isFinished, type Message, type Run } from './message.js';
import { newMessageId } from './message-id.js';
import { type SpaceStore, spaceStore } from './space-store.js';
import { handlerOf, type Tools } from './tool.js';

/** Most tools that the gateway takes of an executor. */
const EXECUTOR_TOOLS_MAX = 256;

/**
 * What the chat is doing: `submitted` until the first text arrives, `waiting_…` while the run waits for a
 * client, an approval or a time, `error` if the last run failed or a message was rejected.
 */
export type ChatStatus =
  | 'ready'
  | 'submitted'
  | 'streaming'
  | 'waiting_tool'
  | 'waiting_approval'
  | 'waiting_time'
  | 'error';

export interface ChatSnapshot {
  /** Absent until the first message is sent, or a space is opened. */
  readonly spaceId?: string;
  /** The conversation, followed by messages that are being sent; without messages of child runs. */
  readonly messages: readonly Message[];
  readonly status: ChatStatus;
  /** The last error: a rejected message, a failed run, or a connection that will not be retried. */
  readonly error?: Error;
  readonly connection: Connection;
  /** The latest run. */
  readonly run?: Run;
}

export interface ChatOptions {
  /** The agent that answers; by default the space's or the gateway's default agent. */
  readonly agent?: string;
  /** The space to open; without one, the first message creates one. */
  readonly spaceId?: string;
  /** Called when the chat moves to another space, so that its id can be stored. */
  readonly onSpaceChange?: (spaceId: string | undefined) => void;
}

const EMPTY: ChatSnapshot = { messages: [], status: 'ready', connection: 'idle' };

/** One chat: a space, the messages that are being sent to it, and the actions. Independent of React. */
export class ChatStore {
  readonly client: ToolgateClient;
  /** May be replaced at any time; the next message uses them. */
  options: ChatOptions;
  /** Client tools; their definitions are sent with each message. */
  tools: Tools = {};
  #space: SpaceStore | undefined;
  #making: Promise<{ id: string }> | undefined;
  #outgoing: readonly Message[] = [];
  #error: Error | undefined;
  #snapshot: ChatSnapshot = EMPTY;
  readonly #listeners = new Set<() => void>();
  #unsubscribe: (() => void) | undefined;

  constructor(client: ToolgateClient, options: ChatOptions = {}) {
    this.client = client;
    this.options = options;
    if (options.spaceId) this.#space = spaceStore(client, options.spaceId);
    this.#snapshot = this.#compute();
  }

  /** The current state. The same object until something changes. */
  readonly snapshot = (): ChatSnapshot => this.#snapshot;

  /** The state that a server renders. */
  readonly serverSnapshot = (): ChatSnapshot => EMPTY;

  /** Calls `listener` after each change, until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    const entry = (): void => listener();
    this.#listeners.add(entry);
    this.#follow();
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.#unfollow();
    };
  };

  /** Moves to another space, or to none: then the next message starts a new conversation. */
  readonly open = (spaceId: string | undefined): void => {
    if (spaceId === this.#space?.spaceId) return;
    this.#unfollow();
    this.#space = spaceId === undefined ? undefined : spaceStore(this.client, spaceId);
    this.#outgoing = [];
    this.#error = undefined;
    if (this.#listeners.size > 0) this.#follow();
    this.#publish();
    this.options.onSpaceChange?.(spaceId);
  };

  /**
   * Sends a message. It is shown at once, and the promise resolves when the gateway has stored it. A message
   * that could not be sent stays as `failed`, and `resend` retries it with the same id, so that it is stored
   * once.
   */
  readonly send = async (text: string): Promise<void> => {
    const message: Message = {
      id: newMessageId(),
      role: 'user',
      state: 'sending',
      time: new Date().toISOString(),
      parts: [{ type: 'text', id: '0', text, streaming: false }],
    };
    this.#outgoing = [...this.#outgoing, message];
    await this.#post(message);
  };

  /** Retries a failed message. */
  readonly resend = async (messageId: string): Promise<void> => {
    const message = this.#outgoing.find(({ id, state }) => id === messageId && state === 'failed');
    if (message) await this.#post(message);
  };

  /**
   * Cancels the run under way, also while it waits. Resolves when the gateway has stored the cancellation.
   */
  readonly stop = async (): Promise<void> => {
    const open = Object.values(this.#space?.snapshot().runs ?? {}).filter(
      (run) => !isFinished(run.status) && run.parentCallId === undefined,
    );
    try {
      await Promise.all(open.map((run) => this.client.runs.cancel(run.id)));
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  };

  /**
   * Approves a call, approves it with an edited input, or rejects it. An error is thrown, and not kept as the
   * chat's error.
   */
  readonly decide = async (
    approvalId: string,
    decision: { approved: true; input?: unknown; remember?: boolean } | { approved: false; reason?: string },
  ): Promise<void> => {
    await this.client.approvals.decide(approvalId, decision);
  };

  /** Reconnects at once after the connection has failed. */
  readonly reconnect = (): void => this.#space?.reconnect();

  async #post(message: Message): Promise<void> {
    this.#mark(message.id, 'sending');
    this.#error = undefined;
    this.#publish();
    try {
      await this.client.ready();
      const space = await this.#ensureSpace();
      await this.client.spaces.post(space.spaceId, {
        messageId: message.id,
        message: message.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
        agent: this.options.agent,
        clientTools: definitionsOf(this.client, this.tools),
        executor: this.#executor(space),
      });
    } catch (error) {
      this.#mark(message.id, 'failed');
      this.#fail(error);
      throw error;
    }
  }

  /** This page, as the executor of its tools: the chat's, those of its other components, and those of plugins. */
  #executor(space: SpaceStore): wire.MessageExecutor | undefined {
    const own = Object.keys(this.tools).filter((name) => handlerOf(this.tools, name) !== undefined);
    const plugged = this.client.getClientToolDefinitions().map(({ name }) => name);
    const executed = plugged.filter((name) => this.client.hasExecutor(name));
    const tools = [...new Set([...own, ...space.executor.toolNames(), ...executed])];
    if (tools.length === 0) return undefined;
    return { holder: this.client.clientId, tools: tools.slice(0, EXECUTOR_TOOLS_MAX) };
  }

  /** The space; created if there is none. Messages that are sent at the same time share one. */
  async #ensureSpace(): Promise<SpaceStore> {
    if (this.#space) return this.#space;
    this.#making ??= this.client.spaces.create({ agent: this.options.agent }).finally(() => {
      this.#making = undefined;
    });
    const { id } = await this.#making;
    // Another space may have been opened meanwhile; then the message goes there.
    if (!this.#space) {
      this.#space = spaceStore(this.client, id);
      this.#space.isMadeHere = true;
      if (this.#listeners.size > 0) this.#follow();
      this.options.onSpaceChange?.(id);
    }
    return this.#space;
  }

  #mark(messageId: string, state: Message['state']): void {
    this.#outgoing = this.#outgoing.map((message) =>
      message.id === messageId ? { ...message, state } : message,
    );
  }

  #fail(error: unknown): void {
    this.#error = error instanceof Error ? error : new Error(String(error));
    this.#publish();
  }

  #follow(): void {
    this.#unsubscribe ??= this.#space?.subscribe(() => this.#publish());
  }

  #unfollow(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  #publish(): void {
    this.#snapshot = this.#compute();
    for (const listener of this.#listeners) listener();
  }

  #compute(): ChatSnapshot {
    const space = this.#space?.snapshot();
    const said = space?.messages.filter((message) => message.parentCallId === undefined) ?? [];
    const known = new Set(said.map((message) => message.id));
    this.#outgoing = this.#outgoing.filter((message) => !known.has(message.id));
    const run = space && latestRun(space);
    const error = this.#error ?? space?.connectionError ?? failureOf(run);
    return {
      messages: [...said, ...this.#outgoing],
      status: statusOf(said, this.#outgoing, run, error),
      connection: space?.connection ?? 'idle',
      ...(this.#space && { spaceId: this.#space.spaceId }),
      ...(error && { error }),
      ...(run && { run }),
    };
  }
}

function latestRun(space: ConversationSnapshot): Run | undefined {
  return Object.values(space.runs).findLast((run) => run.parentCallId === undefined);
}

function failureOf(run: Run | undefined): Error | undefined {
  if (run?.status !== 'failed') return undefined;
  return new Error(run.error ?? `the run failed: ${run.reason ?? 'no reason given'}`);
}

function statusOf(
  said: readonly Message[],
  outgoing: readonly Message[],
  run: Run | undefined,
  error: Error | undefined,
): ChatStatus {
  if (outgoing.some((message) => message.state === 'sending')) return 'submitted';
  if (run && !isFinished(run.status)) {
    if (run.status !== 'running' && run.status !== 'queued') return run.status as ChatStatus;
    const reply = said.findLast((message) => message.runId === run.id);
    return reply?.role === 'assistant' && reply.parts.length > 0 ? 'streaming' : 'submitted';
  }
  return error ? 'error' : 'ready';
}

/**
 * The definitions of the page's tools and of the client's plugins. `timeout` is left out: it limits the
 * handler, not how long the run waits for a client.
 */
function definitionsOf(client: ToolgateClient, tools: Tools): wire.NewClientTool[] | undefined {
  const own = Object.entries(tools).flatMap(([name, tool]) => {
    if (typeof tool === 'function') return [];
    const { description, parameters, outputSchema, version, deprecated } = tool;
    return [
      {
        ...{ name, description, parameters },
        ...(outputSchema && { outputSchema }),
        ...(version !== undefined && { version }),
        ...(deprecated !== undefined && { deprecated }),
      },
    ];
  });
  const plugged = client.getClientToolDefinitions().filter(({ name }) => !Object.hasOwn(tools, name));
  const definitions = [...own, ...plugged];
  return definitions.length > 0 ? definitions : undefined;
}
