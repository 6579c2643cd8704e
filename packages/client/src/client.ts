import { CallerContexts } from './caller-contexts.js';
import { Calls } from './calls.js';
import { chat } from './chat.js';
import type { ChatOptions, ChatResult, Chunk, ToolEnd } from './chunk.js';
import { Connection, type ConnectionOptions } from './connection.js';
import { Consents } from './consents.js';
import { Conversations } from './conversations.js';
import { Curators } from './curators.js';
import { Entities } from './entities.js';
import { CODES, PluginError } from './error.js';
import { Files } from './files.js';
import { freshKey } from './fresh-key.js';
import { GatewayInfo } from './gateway-info.js';
import { InstalledPlugins } from './installed-plugins.js';
import type { ToolParameters } from './json-schema.js';
import { Keys } from './keys.js';
import { Knowledge } from './knowledge.js';
import { McpServers } from './mcp-servers.js';
import type { PluginTool, ToolgatePlugin } from './plugin.js';
import { callHook, throwAll } from './plugin-hook.js';
import { PluginRegistry } from './plugin-registry.js';
import { Projects } from './projects.js';
import { Records } from './records.js';
import { Agents, Approvals, Questions, Runs, Spaces } from './resources.js';
import { defineTool } from './runnable.js';
import { Sessions } from './sessions.js';
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
import { ToolRegistry } from './tool-registry.js';
import { ToolServer } from './tool-server.js';
import { Tools } from './tools.js';
import type { ChatHost } from './turn.js';
import { ProjectUsage } from './usage.js';
import { satisfies } from './version-range.js';
import { wireDefinition } from './wire-definition.js';

/** Options of a client. */
export interface ToolgateClientOptions extends ConnectionOptions {
  /** The agent of chats that name none. */
  agent?: string;
  /** Logs what the client does: to the console, or to a function. */
  debug?: boolean | ((line: string) => void);
  /** The name with which this client claims calls; a random one by default. */
  clientId?: string;
}

/** Events of `client.on`. */
export interface ClientEvents {
  /** A tool starts to execute. */
  tool_start: ToolCall;
  /** A tool has been executed. */
  tool_end: ToolEnd;
  /** A chat stream has ended. */
  finish: ChatResult;
}

/** A gateway, as seen by a backend or a browser, and the client tools that run here. */
export class ToolgateClient {
  /** The name with which this client claims calls. */
  readonly clientId: string;
  readonly runs: Runs;
  readonly spaces: Spaces;
  readonly agents: Agents;
  readonly approvals: Approvals;
  readonly consents: Consents;
  readonly questions: Questions;
  readonly tools: Tools;
  /** Tools that the agents of the project share; needs a secret key. */
  readonly registry: ToolRegistry;
  readonly calls: Calls;
  readonly files: Files;
  readonly knowledge: Knowledge;
  readonly sessions: Sessions;
  readonly keys: Keys;
  readonly projects: Projects;
  /** Plugins that are installed in the gateway; those of this client are added with `use`. */
  readonly installedPlugins: InstalledPlugins;
  readonly curators: Curators;
  readonly entities: Entities;
  readonly mcpServers: McpServers;
  readonly goals: Records;
  readonly memories: Records;
  readonly plans: Records;
  readonly gateway: GatewayInfo;
  /** Runs, tokens and cost, and how far budgets are used up. */
  readonly usage: ProjectUsage;
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
    this.consents = new Consents(connection);
    this.questions = new Questions(connection);
    this.calls = new Calls(connection);
    this.files = new Files(connection);
    this.knowledge = new Knowledge(connection);
    this.sessions = new Sessions(connection);
    this.keys = new Keys(connection);
    this.projects = new Projects(connection);
    this.installedPlugins = new InstalledPlugins(connection);
    this.curators = new Curators(connection);
    this.entities = new Entities(connection);
    this.mcpServers = new McpServers(connection);
    this.goals = new Records(connection, 'goals');
    this.memories = new Records(connection, 'memories');
    this.plans = new Records(connection, 'plans');
    this.gateway = new GatewayInfo(connection);
    this.usage = new ProjectUsage(connection);
    this.registry = new ToolRegistry(connection, this);
    const contexts = new CallerContexts();
    this.tools = new Tools(connection, this.clientId, contexts, (spaceId, serving) => {
      const server = new ToolServer({ ...this.#host(), contexts, clientId: this.clientId }, spaceId, serving);
      this.#servers.add(server);
      const forget = (): boolean => this.#servers.delete(server);
      server.done.then(forget, forget);
      return server;
    });
  }

  /**
   * Registers a plugin. Throws a `PluginError` at once if it is malformed or conflicts with another. Its
   * `onRegister` is awaited by `ready` and by every chat; if it fails, they throw and the plugin is removed.
   */
  use<const T extends readonly PluginTool[]>(given: ToolgatePlugin<T>): this {
    const plugin = given as unknown as ToolgatePlugin;
    this.#registry.add(plugin);
    this.#starting = this.#starting.then(() => this.#start(plugin));
    return this;
  }

  /**
   * Removes a plugin and waits for its `onUnregister`. Throws if it is not registered, or another plugin
   * depends on it.
   */
  async unuse(name: string): Promise<void> {
    const plugin = this.#registry.remove(name);
    await this.#starting;
    await callHook(plugin, 'onUnregister', (hooks) => hooks.onUnregister?.());
  }

  /**
   * Reads the tools of a plugin again, after it has changed its `tools`. Chats that are started from now on have them; those
   * that run can still call the earlier ones. Throws a `PluginError`, and changes nothing, if they are malformed or conflict.
   */
  refreshPlugin(name: string): void {
    this.#registry.refresh(name);
  }

  /** Registers one tool, with the type of its arguments inferred from `parameters` or `input`. */
  registerTool<const P extends ToolParameters>(tool: SchemaTool<P>): this;
  registerTool<S extends StandardSchema>(tool: StandardTool<S>): this;
  registerTool(tool: RunnableTool): this;
  registerTool(tool: SchemaTool | StandardTool | RunnableTool): this {
    this.#registry.addTool('definition' in tool ? tool : defineTool(tool as SchemaTool));
    return this;
  }

  /** Removes a tool that was registered with `registerTool`. */
  unregisterTool(name: string): this {
    this.#registry.removeTool(name);
    return this;
  }

  /** Whether a plugin of this name is registered. */
  hasPlugin(name: string): boolean {
    return this.#registry.has(name);
  }

  /** The names of all plugins, in the order of `use`. */
  getPluginNames(): string[] {
    return this.#registry.names();
  }

  /** The tool definitions that are sent with every chat, in the form in which the gateway reads them. */
  getClientToolDefinitions(): ClientToolDefinition[] {
    return this.#registry.definitions().map(wireDefinition);
  }

  /** Whether a tool has an executor on this client. */
  hasExecutor(toolName: string): boolean {
    return this.#registry.hasExecutor(toolName);
  }

  /**
   * Executes a tool as a chat would, without the gateway. Call it from your `onToolCall` to run the default
   * executor.
   */
  async execute(call: ToolCallLike, context: Partial<ToolContext> = {}): Promise<unknown> {
    const read = readToolCall(call);
    const { toolCallId, toolName } = read;
    const signal = context.signal ?? new AbortController().signal;
    return this.#registry.execute(read, {
      toolCallId,
      toolName,
      progress: async () => {},
      history: async () => [],
      member: async () => undefined,
      ...context,
      signal,
    });
  }

  /** Resolves when every plugin has started. Rejects, once, with the error of a plugin that has not. */
  async ready(): Promise<void> {
    await this.#starting;
    const failure = this.#failures.shift();
    if (failure !== undefined) throw failure;
  }

  /** Adds a listener for what this client does. Returns a function that removes it. */
  on<E extends keyof ClientEvents>(type: E, handler: (event: ClientEvents[E]) => void): () => void {
    const handlers = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** Sends a message and yields the answer as it arrives; executes the calls of this client's tools. */
  chatStream(options: ChatOptions): AsyncGenerator<Chunk, ChatResult, void> {
    return chat(this.#host(), options);
  }

  /**
   * Returns the complete answer. Ends with `approval` if a call waits for one, unless `onApproval` decides.
   */
  async chat(options: ChatOptions | string): Promise<ChatResult> {
    const given = typeof options === 'string' ? { message: options } : options;
    const stream = this.chatStream({ waitForApproval: false, ...given });
    for (;;) {
      const next = await stream.next();
      if (next.done) return next.value;
    }
  }

  /**
   * Closes tool servers and removes all plugins, the last one first. Throws what a plugin's `onUnregister` threw when all of
   * them are removed.
   */
  async close(): Promise<void> {
    await Promise.all([...this.#servers].map((server) => server.close()));
    const failures: unknown[] = [];
    for (const name of this.getPluginNames().reverse()) {
      await this.unuse(name).catch((error: unknown) => failures.push(error));
    }
    throwAll(failures);
  }

  async #start(plugin: ToolgatePlugin): Promise<void> {
    // It was removed before it could start.
    if (!this.#registry.has(plugin.name)) return;
    try {
      await this.#refuseEngine(plugin);
      await callHook(plugin, 'onRegister', (hooks) => hooks.onRegister?.(this));
      this.#registry.refresh(plugin.name);
    } catch (cause) {
      const message = `plugin "${plugin.name}" could not be started: ${cause instanceof Error ? cause.message : cause}`;
      this.#failures.push(
        cause instanceof PluginError ? cause : new PluginError(CODES.pluginFailed, message, { cause }),
      );
      if (this.#registry.has(plugin.name)) this.#registry.remove(plugin.name);
    }
  }

  async #refuseEngine({ name, engine }: ToolgatePlugin): Promise<void> {
    if (engine === undefined) return;
    this.#version ??= this.#gatewayVersion();
    const version = await this.#version;
    if (version === undefined)
      return this.#log(`plugin ${name}: the gateway's version is unknown, its range is not checked`);
    if (satisfies(version, engine) === false) {
      const message = `plugin "${name}" needs a gateway of version ${engine}, this one is ${version}`;
      throw new PluginError(CODES.pluginEngine, message);
    }
  }

  async #gatewayVersion(): Promise<string | undefined> {
    try {
      const document = await this.#connection.json<{ info?: { version?: string } }>('/openapi.json');
      return document.info?.version;
    } catch {
      // Read again for the next plugin; if the gateway is unavailable, the chat's own request fails.
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
      runs: this.runs,
      spaces: this.spaces,
      approvals: this.approvals,
      holder: this.clientId,
      agent: this.#agent,
      ready: () => this.ready(),
      log: this.#log,
      onToolStart: (call) => this.#emit('tool_start', call),
      onToolEnd: (end) => this.#emit('tool_end', end),
      onFinish: (result) => this.#emit('finish', result),
    };
  }

  #emit<E extends keyof ClientEvents>(type: E, event: ClientEvents[E]): void {
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
