import type { ChatOptions, ChatResult, Chunk, ToolEnd } from './chunk.js';
import { Connection, type ConnectionOptions } from './connection.js';
import { freshKey } from './fresh-key.js';
import type { ToolParameters } from './json-schema.js';
import type { ToolgatePlugin } from './plugin.js';
import { Agents, Approvals, Runs, Spaces } from './resources.js';
import type { StandardSchema } from './standard-schema.js';
import type { ClientToolDefinition, SchemaTool, StandardTool, ToolCall, ToolCallLike } from './tool.js';
import { ToolServer } from './tool-server.js';
import { Tools } from './tools.js';

/** What a client is made of. */
export interface ToolgateClientOptions extends ConnectionOptions {
  /** Who answers, unless a chat says otherwise. */
  agent?: string;
  /** Says what the client does: to the console, or to a function of yours. */
  debug?: boolean | ((line: string) => void);
  /** A name for this client, by which it holds calls; a fresh one unless said otherwise. */
  clientId?: string;
}

/** What a client tells those who listen with `client.on`. */
export interface ClientEvents {
  /** It begins to run a tool. */
  tool_start: ToolCall;
  /** It has run a tool. */
  tool_end: ToolEnd;
  /** A chat stream has ended. */
  finish: ChatResult;
}

/** A gateway, seen from a backend or a browser, and the tools that run here. */
export class ToolgateClient {
  readonly clientId: string;
  readonly runs: Runs;
  readonly spaces: Spaces;
  readonly agents: Agents;
  readonly approvals: Approvals;
  readonly tools: Tools;

  constructor(options: ToolgateClientOptions) {
    const connection = new Connection(options, () => {});
    this.clientId = options.clientId ?? `client-${freshKey().slice(0, 12)}`;
    this.runs = new Runs(connection);
    this.spaces = new Spaces(connection);
    this.agents = new Agents(connection);
    this.approvals = new Approvals(connection);
    this.tools = new Tools(connection, this.clientId, () => new ToolServer());
  }

  /** Adds a plugin. Throws a `PluginError` at once when it is malformed or in conflict with another. */
  use(_plugin: ToolgatePlugin): this {
    throw new Error('not yet');
  }

  /** Removes a plugin and waits for its `onUnregister`. */
  async unuse(_name: string): Promise<void> {
    throw new Error('not yet');
  }

  /** Adds one tool. */
  registerTool<const P extends ToolParameters>(tool: SchemaTool<P>): this;
  registerTool<S extends StandardSchema>(tool: StandardTool<S>): this;
  registerTool(_tool: unknown): this {
    throw new Error('not yet');
  }

  /** Removes one tool that `registerTool` added. */
  unregisterTool(_name: string): void {
    throw new Error('not yet');
  }

  hasPlugin(_name: string): boolean {
    throw new Error('not yet');
  }

  getPluginNames(): string[] {
    throw new Error('not yet');
  }

  /** What the gateway is told with every run. */
  getClientToolDefinitions(): ClientToolDefinition[] {
    throw new Error('not yet');
  }

  /** Whether a call of this tool can be executed here. */
  hasExecutor(_toolName: string): boolean {
    throw new Error('not yet');
  }

  /** Runs a tool here and now, as a chat would, without telling the gateway. */
  async execute(_call: ToolCallLike): Promise<unknown> {
    throw new Error('not yet');
  }

  /** Resolves when every plugin has started. Requests wait for it by themselves. */
  async ready(): Promise<void> {}

  /** Listens to what this client does. Gives what stops it. */
  on<E extends keyof ClientEvents>(_type: E, _handler: (event: ClientEvents[E]) => void): () => void {
    throw new Error('not yet');
  }

  /** Says something and yields the answer as it comes; runs the tools that it asks this client for. */
  // biome-ignore lint/correctness/useYield: not yet
  async *chatStream(_options: ChatOptions): AsyncGenerator<Chunk, ChatResult, void> {
    throw new Error('not yet');
  }

  /** The same as a whole. */
  async chat(_options: ChatOptions | string): Promise<ChatResult> {
    throw new Error('not yet');
  }

  /** Removes all plugins and stops everything that this client has under way. */
  async close(): Promise<void> {}
}
