import { Calls } from './calls.js';
import { chat } from './chat.js';
import type { ChatOptions, ChatResult, Chunk, ToolEnd } from './chunk.js';
import { Connection, type ConnectionOptions } from './connection.js';
import { Conversations } from './conversations.js';
import { CODES, PluginError } from './error.js';
import { Files } from './files.js';
import { freshKey } from './fresh-key.js';
import type { ToolParameters } from './json-schema.js';
import { Knowledge } from './knowledge.js';
import type { ToolgatePlugin } from './plugin.js';
import { PluginRegistry } from './plugin-registry.js';
import { Agents, Approvals, Runs, Spaces } from './resources.js';
import { defineTool } from './runnable.js';
import type { StandardSchema } from './standard-schema.js';
import type {
  ClientToolDefinition,
  RunnableTool,
  SchemaTool,
  StandardTool,
  ToolCall,
  ToolCallLike,
  ToolContext,
} from './tool.js';
import { readToolCall } from './tool-call.js';
import { ToolServer } from './tool-server.js';
import { Tools } from './tools.js';
import type { ChatHost } from './turn.js';
import { satisfies } from './version-range.js';

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
  /** The name by which this client holds calls. */
  readonly clientId: string;
  readonly runs: Runs;
  readonly spaces: Spaces;
  readonly agents: Agents;
  readonly approvals: Approvals;
  readonly tools: Tools;
  readonly calls: Calls;
  readonly files: Files;
  readonly knowledge: Knowledge;
  readonly #connection: Connection;
  readonly #registry: PluginRegistry;
  readonly #log: (line: string) => void;
  readonly #agent: string | undefined;
  readonly #conversations = new Conversations();
  readonly #servers = new Set<ToolServer>();
  readonly #listeners = new Map<keyof ClientEvents, Set<(event: never) => void>>();
  /** Plugins start one after another, in the order of `use`. */
  #starting: Promise<void> = Promise.resolve();
  #failures: unknown[] = [];
  #version: Promise<string | undefined> | undefined;

  constructor(options: ToolgateClientOptions) {
    const { debug } = options;
    this.#log =
      typeof debug === 'function' ? debug : debug ? (line) => console.debug(`[toolgate] ${line}`) : () => {};
    this.#agent = options.agent;
    this.clientId = options.clientId ?? `client-${freshKey().slice(0, 12)}`;
    this.#registry = new PluginRegistry(this.#log);
    const connection = new Connection(options, this.#log);
    this.#connection = connection;
    this.runs = new Runs(connection);
    this.spaces = new Spaces(connection);
    this.agents = new Agents(connection);
    this.approvals = new Approvals(connection);
    this.calls = new Calls(connection);
    this.files = new Files(connection);
    this.knowledge = new Knowledge(connection);
    this.tools = new Tools(connection, this.clientId, (spaceId, serving) => {
      const server = new ToolServer(
        { ...this.#host(), runs: this.runs, spaces: this.spaces, clientId: this.clientId },
        spaceId,
        serving,
      );
      this.#servers.add(server);
      const forget = (): boolean => this.#servers.delete(server);
      server.done.then(forget, forget);
      return server;
    });
  }

  /**
   * Adds a plugin. Throws a `PluginError` at once when it is malformed or in conflict with another. Its
   * `onRegister` is awaited by `ready` and by every chat; when it fails, they throw and the plugin is gone.
   */
  use(plugin: ToolgatePlugin): this {
    this.#registry.add(plugin);
    this.#starting = this.#starting.then(() => this.#start(plugin));
    return this;
  }

  /** Removes a plugin and waits for its `onUnregister`. Throws when there is none, or another depends on it. */
  async unuse(name: string): Promise<void> {
    const plugin = this.#registry.remove(name);
    await this.#starting;
    await plugin.hooks?.onUnregister?.();
  }

  /** Adds one tool, the type of its arguments inferred from `parameters` or `input`. */
  registerTool<const P extends ToolParameters>(tool: SchemaTool<P>): this;
  registerTool<S extends StandardSchema>(tool: StandardTool<S>): this;
  registerTool(tool: RunnableTool): this;
  registerTool(tool: SchemaTool | StandardTool | RunnableTool): this {
    this.#registry.addTool('definition' in tool ? tool : defineTool(tool as SchemaTool));
    return this;
  }

  /** Removes a tool that `registerTool` added. */
  unregisterTool(name: string): this {
    this.#registry.removeTool(name);
    return this;
  }

  /** Whether a plugin of this name is there. */
  hasPlugin(name: string): boolean {
    return this.#registry.has(name);
  }

  /** In the order of `use`. */
  getPluginNames(): string[] {
    return this.#registry.names();
  }

  /** What the gateway is told with every chat. */
  getClientToolDefinitions(): ClientToolDefinition[] {
    return this.#registry.definitions();
  }

  /** Whether a tool has an executor here. */
  hasExecutor(toolName: string): boolean {
    return this.#registry.hasExecutor(toolName);
  }

  /**
   * Runs a tool here and now, as a chat would, without telling the gateway. What an `onToolCall` of yours calls
   * when it has nothing of its own to do.
   */
  async execute(call: ToolCallLike, context: Partial<ToolContext> = {}): Promise<unknown> {
    const read = readToolCall(call);
    const { toolCallId, toolName } = read;
    const signal = context.signal ?? new AbortController().signal;
    return this.#registry.execute(read, {
      toolCallId,
      toolName,
      progress: async () => {},
      ...context,
      signal,
    });
  }

  /** Resolves when every plugin has started. Rejects, once, with what kept one from it. */
  async ready(): Promise<void> {
    await this.#starting;
    const failure = this.#failures.shift();
    if (failure !== undefined) throw failure;
  }

  /** Listens to what this client does. Gives what stops it. */
  on<E extends keyof ClientEvents>(type: E, handler: (event: ClientEvents[E]) => void): () => void {
    const handlers = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** Says something and yields the answer as it comes; runs the tools that the model asks this client for. */
  chatStream(options: ChatOptions): AsyncGenerator<Chunk, ChatResult, void> {
    return chat(this.#host(), options);
  }

  /** The answer as a whole. Ends with `approval` when a person must decide, unless `onApproval` does. */
  async chat(options: ChatOptions | string): Promise<ChatResult> {
    const given = typeof options === 'string' ? { message: options } : options;
    const stream = this.chatStream({ waitForApproval: false, ...given });
    for (;;) {
      const next = await stream.next();
      if (next.done) return next.value;
    }
  }

  /** Closes what serves tools and removes all plugins, the last one first. */
  async close(): Promise<void> {
    await Promise.all([...this.#servers].map((server) => server.close()));
    for (const name of this.getPluginNames().reverse()) await this.unuse(name);
  }

  async #start(plugin: ToolgatePlugin): Promise<void> {
    // Removed before its turn came.
    if (!this.#registry.has(plugin.name)) return;
    try {
      await this.#refuseEngine(plugin);
      await plugin.hooks?.onRegister?.(this);
      this.#registry.refresh(plugin.name);
    } catch (cause) {
      const words = `plugin "${plugin.name}" did not start: ${cause instanceof Error ? cause.message : cause}`;
      this.#failures.push(
        cause instanceof PluginError ? cause : new PluginError(CODES.pluginFailed, words, { cause }),
      );
      if (this.#registry.has(plugin.name)) this.#registry.remove(plugin.name);
    }
  }

  async #refuseEngine({ name, engine }: ToolgatePlugin): Promise<void> {
    if (engine === undefined) return;
    this.#version ??= this.#gatewayVersion();
    const version = await this.#version;
    if (version === undefined)
      return this.#log(`plugin ${name}: the gateway's version is not known; not checked`);
    if (satisfies(version, engine) === false) {
      const words = `plugin "${name}" needs a gateway ${engine}; this one is ${version}`;
      throw new PluginError(CODES.pluginEngine, words);
    }
  }

  async #gatewayVersion(): Promise<string | undefined> {
    try {
      const document = await this.#connection.json<{ info?: { version?: string } }>('/openapi.json');
      return document.info?.version;
    } catch {
      // Asked again by the next plugin; a gateway that is away fails the request itself.
      this.#version = undefined;
      return undefined;
    }
  }

  #host(): ChatHost {
    return {
      connection: this.#connection,
      registry: this.#registry,
      conversations: this.#conversations,
      tools: this.tools,
      approvals: this.approvals,
      holder: this.clientId,
      agent: this.#agent,
      ready: () => this.ready(),
      log: this.#log,
      onToolStart: (call) => this.#tell('tool_start', call),
      onToolEnd: (end) => this.#tell('tool_end', end),
      onFinish: (result) => this.#tell('finish', result),
    };
  }

  #tell<E extends keyof ClientEvents>(type: E, event: ClientEvents[E]): void {
    this.#log(`${type} ${'toolName' in event ? event.toolName : ''}`.trim());
    for (const handler of this.#listeners.get(type) ?? []) {
      try {
        (handler as (event: ClientEvents[E]) => void)(event);
      } catch (error) {
        this.#log(`a ${type} handler failed: ${error}`);
      }
    }
  }
}
