import type { ChatResult } from './chunk.js';
import { safeValidateToolDefinitions } from './definition-rules.js';
import { CODES, PluginError, ToolError } from './error.js';
import type { PluginTool, ToolgatePlugin } from './plugin.js';
import { callHook, throwAll } from './plugin-hook.js';
import { defineTool } from './runnable.js';
import { readTimeout } from './timeout.js';
import type {
  ClientToolDefinition,
  RunnableTool,
  SchemaTool,
  ToolCall,
  ToolContext,
  ToolExecutor,
} from './tool.js';
import { isVersion, satisfies } from './version-range.js';
import type { StartRun } from './wire.js';

/** A tool, its owner, and its executor, if it has one. */
interface OwnedTool {
  /** The owning plugin's name; `undefined` for a tool of `registerTool`. */
  owner: string | undefined;
  definition: ClientToolDefinition;
  timeoutMs?: number;
  execute?: ToolExecutor;
}

/** Tools that can still be called after their plugin has dropped them. */
const RETIRED_MAX = 256;

/** The plugins and tools of a client. Rejects what is malformed or conflicting before anything changes. */
export class PluginRegistry {
  readonly #plugins = new Map<string, ToolgatePlugin>();
  readonly #tools = new Map<string, OwnedTool>();
  /** Tools that plugins had before, the oldest first: chats that run may still call them. */
  readonly #retired = new Map<string, OwnedTool>();
  readonly #log: (line: string) => void;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  add(plugin: ToolgatePlugin): void {
    this.#refuseMalformed(plugin);
    if (this.#plugins.has(plugin.name)) {
      throw new PluginError(CODES.pluginConflict, `a plugin named "${plugin.name}" is already registered`);
    }
    this.#refuseMissing(plugin);
    const tools = this.#toolsOf(plugin);
    // `onRegister` may add executors; its tools are read again after it.
    if (!plugin.hooks?.onRegister) this.#refuseUnexecuted(plugin, tools);
    this.#plugins.set(plugin.name, plugin);
    this.#own(tools);
    this.#log(`plugin ${plugin.name} ${plugin.version}: ${tools.length} tools`);
  }

  /** Reads a plugin's tools again. Those that are gone are no longer offered, but can still be called. */
  refresh(name: string): void {
    const plugin = this.#plugins.get(name);
    if (!plugin) return;
    const tools = this.#toolsOf(plugin);
    this.#refuseUnexecuted(plugin, tools);
    const before = [...this.#tools.values()].filter(({ owner }) => owner === name);
    this.#disown(name);
    this.#own(tools);
    this.#retire(before.filter(({ definition }) => !this.#tools.has(definition.name)));
  }

  addTool({ definition, timeoutMs, execute }: RunnableTool): void {
    if (typeof execute !== 'function') {
      throw new PluginError(
        CODES.pluginInvalid,
        `tool "${definition.name}" has no \`execute\`, which must be a function`,
      );
    }
    const tool: OwnedTool = { owner: undefined, definition, execute, ...limit(definition.name, timeoutMs) };
    this.#refuseTools([tool], undefined);
    this.#own([tool]);
    this.#log(`tool ${definition.name}`);
  }

  removeTool(name: string): void {
    const tool = this.#tools.get(name);
    if (!tool || tool.owner !== undefined) {
      throw new PluginError(CODES.pluginUnknown, `there is no registered tool named "${name}"`);
    }
    this.#tools.delete(name);
  }

  /** Removes a plugin and returns it, so that its `onUnregister` can be called. */
  remove(name: string): ToolgatePlugin {
    const plugin = this.#plugins.get(name);
    if (!plugin) throw new PluginError(CODES.pluginUnknown, `there is no plugin named "${name}"`);
    for (const other of this.#plugins.values()) {
      if (Object.hasOwn(other.dependencies ?? {}, name)) {
        const message = `plugin "${name}" cannot be removed, "${other.name}" depends on it`;
        throw new PluginError(CODES.pluginDependency, message);
      }
    }
    this.#plugins.delete(name);
    this.#disown(name);
    for (const [tool, { owner }] of this.#retired) if (owner === name) this.#retired.delete(tool);
    this.#log(`plugin ${name} removed`);
    return plugin;
  }

  has(name: string): boolean {
    return this.#plugins.has(name);
  }

  names(): string[] {
    return [...this.#plugins.keys()];
  }

  definitions(): ClientToolDefinition[] {
    return [...this.#tools.values()].map(({ definition }) => definition);
  }

  /** Whether this client executes the tool: by its executor, or by a plugin's `onToolCall`. */
  handles(toolName: string): boolean {
    return this.#callable(toolName)?.execute !== undefined || this.handlesAny();
  }

  /** Whether a plugin's `onToolCall` may execute any tool. */
  handlesAny(): boolean {
    return [...this.#plugins.values()].some((plugin) => plugin.hooks?.onToolCall);
  }

  hasExecutor(toolName: string): boolean {
    return this.#tools.get(toolName)?.execute !== undefined;
  }

  timeoutOf(toolName: string): number | undefined {
    return this.#callable(toolName)?.timeoutMs;
  }

  /** Executes a tool: by its executor, otherwise by the first plugin whose `onToolCall` returns something. */
  async execute(call: ToolCall, context: ToolContext): Promise<unknown> {
    const tool = this.#callable(call.toolName);
    if (tool?.execute) return tool.execute(call.args, context);
    for (const plugin of this.#plugins.values()) {
      const result = await callHook(plugin, 'onToolCall', (hooks) => hooks.onToolCall?.(call));
      if (result !== undefined) return result;
    }
    throw new ToolError(CODES.toolUnknown, `"${call.toolName}" has no executor on this client`);
  }

  /** Passes a request through the plugins' `beforeRequest` hooks, in order. */
  async beforeRequest(request: StartRun): Promise<StartRun> {
    let current = request;
    for (const plugin of [...this.#plugins.values()]) {
      const given = current;
      current = (await callHook(plugin, 'beforeRequest', (hooks) => hooks.beforeRequest?.(given))) ?? current;
    }
    return current;
  }

  /** Calls every plugin's `afterResponse`, in order, and throws at the end what they threw. */
  async afterResponse(response: ChatResult): Promise<void> {
    const failures: unknown[] = [];
    for (const plugin of [...this.#plugins.values()]) {
      await callHook(plugin, 'afterResponse', (hooks) => hooks.afterResponse?.(response)).catch(
        (error: unknown) => failures.push(error),
      );
    }
    throwAll(failures);
  }

  #callable(toolName: string): OwnedTool | undefined {
    return this.#tools.get(toolName) ?? this.#retired.get(toolName);
  }

  #own(tools: OwnedTool[]): void {
    for (const tool of tools) {
      this.#tools.set(tool.definition.name, tool);
      this.#retired.delete(tool.definition.name);
    }
  }

  #retire(tools: OwnedTool[]): void {
    for (const tool of tools) this.#retired.set(tool.definition.name, tool);
    for (const oldest of this.#retired.keys()) {
      if (this.#retired.size <= RETIRED_MAX) return;
      this.#retired.delete(oldest);
    }
  }

  #disown(owner: string): void {
    for (const [name, tool] of this.#tools) if (tool.owner === owner) this.#tools.delete(name);
  }

  #toolsOf(plugin: ToolgatePlugin): OwnedTool[] {
    const executors = new Map(Object.entries(plugin.executors ?? {}));
    const byDefault =
      plugin.timeout === undefined
        ? {}
        : { timeoutMs: readTimeout(`the plugin "${plugin.name}"`, plugin.timeout) };
    const tools = (plugin.tools ?? []).map((tool): OwnedTool => {
      const runnable = runnableOf(tool);
      const execute =
        (executors.get(runnable.definition.name) as ToolExecutor | undefined) ?? runnable.execute;
      executors.delete(runnable.definition.name);
      return {
        owner: plugin.name,
        definition: runnable.definition,
        ...(execute ? { execute } : {}),
        ...(runnable.timeoutMs === undefined
          ? byDefault
          : limit(runnable.definition.name, runnable.timeoutMs)),
      };
    });
    this.#refuseTools(tools, plugin.name);
    for (const orphan of executors.keys()) {
      const message = `the plugin "${plugin.name}" has an executor for "${orphan}", which is not one of its tools`;
      throw new PluginError(CODES.pluginInvalid, message);
    }
    return tools;
  }

  /** Throws if tools are invalid, or have a name that another owner has. A tool without an owner comes alone. */
  #refuseTools(tools: OwnedTool[], owner: string | undefined): void {
    const checked = safeValidateToolDefinitions(tools.map(({ definition }) => definition));
    if (!checked.success) {
      const problems = checked.errors.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ');
      const invalid =
        owner === undefined
          ? `the tool "${tools[0]?.definition.name}" is invalid`
          : `the tools of the plugin "${owner}" are invalid`;
      throw new PluginError(CODES.pluginInvalid, `${invalid}: ${problems}`, {
        errors: checked.errors,
      });
    }
    const whose = owner === undefined ? '' : ` of the plugin "${owner}"`;
    for (const { definition } of tools) {
      const other = this.#tools.get(definition.name);
      if (other && (owner === undefined || other.owner !== owner)) {
        const holder = other.owner === undefined ? 'another tool' : `"${other.owner}"`;
        throw new PluginError(
          CODES.pluginConflict,
          `the tool "${definition.name}"${whose} is already registered by ${holder}`,
        );
      }
    }
  }

  /** Throws if nothing would execute a tool: its calls would wait for their deadline. */
  #refuseUnexecuted({ name, hooks }: ToolgatePlugin, tools: OwnedTool[]): void {
    const bare = tools.filter(({ execute }) => !execute).map(({ definition }) => `"${definition.name}"`);
    if (bare.length === 0 || hooks?.onToolCall) return;
    const message = `the plugin "${name}" has no executor for ${bare.join(', ')}, expected \`execute\` of the tool, an entry in \`executors\`, or the hook \`onToolCall\``;
    throw new PluginError(CODES.pluginInvalid, message);
  }

  #refuseMalformed(plugin: ToolgatePlugin): void {
    const { name, version, engine } = plugin ?? {};
    const refuse = (message: string): never => {
      throw new PluginError(CODES.pluginInvalid, message);
    };
    if (typeof name !== 'string' || name.trim() === '') refuse('a plugin needs a name');
    if (typeof version !== 'string' || version === '') refuse(`the plugin "${name}" needs a version`);
    if (!isVersion(version)) refuse(`plugin "${name}" has version "${version}", expected one like "1.0.0"`);
    if (engine !== undefined && satisfies('0.0.0', engine) === undefined) {
      refuse(`plugin "${name}" names engine "${engine}", expected a version range like ">=0.1"`);
    }
    for (const [tool, execute] of Object.entries(plugin.executors ?? {})) {
      if (typeof execute !== 'function')
        refuse(`plugin "${name}": the executor of "${tool}" is not a function`);
    }
  }

  #refuseMissing(plugin: ToolgatePlugin): void {
    for (const [name, range] of Object.entries(plugin.dependencies ?? {})) {
      const other = this.#plugins.get(name);
      const needs = `plugin "${plugin.name}" needs plugin "${name}" ${range}`;
      if (!other) throw new PluginError(CODES.pluginDependency, `${needs}, register that first`);
      const fits = satisfies(other.version, range);
      if (fits === undefined)
        throw new PluginError(CODES.pluginInvalid, `${needs}, which is not a version range`);
      if (!fits)
        throw new PluginError(CODES.pluginDependency, `${needs}, but ${other.version} is registered`);
    }
  }
}

/** The timeout of a tool that may come from elsewhere than `defineTool`. */
function limit(tool: string, timeoutMs: number | undefined): { timeoutMs?: number } {
  return timeoutMs === undefined ? {} : { timeoutMs: readTimeout(`tool "${tool}"`, timeoutMs) };
}

/** A plugin's tool and its executor, if it has one: from `defineTool`, or an object as `defineTool` takes it. */
function runnableOf(tool: PluginTool): Partial<RunnableTool> & Pick<RunnableTool, 'definition'> {
  if ('definition' in tool) return tool;
  const { execute } = tool as Partial<SchemaTool>;
  if (execute === undefined) return { definition: tool };
  // Without a schema it is rejected as a definition, with everything else that is wrong.
  if (!('parameters' in tool || 'input' in tool)) return { definition: tool, execute };
  const { outputSchema, ...rest } = tool as ClientToolDefinition & SchemaTool;
  return defineTool(outputSchema ? { output: outputSchema, ...rest } : rest);
}
