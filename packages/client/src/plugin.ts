import type { ChatResult } from './chunk.js';
import type { ToolgateClient } from './client.js';
import type { FromSchema, JsonSchema } from './json-schema.js';
import type { ClientToolDefinition, RunnableTool, ToolCall, ToolExecutor } from './tool.js';
import type { StartRun } from './wire.js';

/** A tool of a plugin: a definition, or one with its executor. */
export type PluginTool = ClientToolDefinition | RunnableTool;

/** The executors of tools, by name. The type of each one's arguments follows from the tool's `parameters`. */
export type Executors<T extends readonly PluginTool[]> = {
  [N in NameOf<T[number]>]?: ToolExecutor<ArgumentsOf<Extract<T[number], { readonly name: N }>>>;
};

type NameOf<D> = D extends { readonly name: infer N extends string } ? N : string;
/** `never` where the schema is not known when the program is compiled: then every executor fits. */
type ArgumentsOf<D> = D extends { readonly parameters: infer P }
  ? JsonSchema extends P
    ? never
    : FromSchema<P>
  : never;

/** A set of tools with life-cycle hooks. `T` is inferred by `client.use` and `definePlugin`. */
export interface ToolgatePlugin<T extends readonly PluginTool[] = PluginTool[]> {
  /** Unique among the plugins of a client. */
  name: string;
  /** Version, `major.minor.patch`. */
  version: string;
  /** The tool definitions. Read again after `onRegister`, which may add some. */
  tools?: T;
  /** The executors, by tool name. */
  executors?: Executors<NoInfer<T>>;
  /** Plugins that must be registered first, by name, each with a version range such as `^1.2`. */
  dependencies?: Record<string, string>;
  /** Range of gateway versions that it works with, such as `>=0.1`. */
  engine?: string;
  /** Default timeout of the plugin's executors: milliseconds, or a string with its unit such as `30s`. */
  timeout?: number | string;
  hooks?: PluginHooks;
}

/**
 * The plugin, with the arguments of its `executors` inferred from the `parameters` of its `tools`. `client.use` infers them
 * too; this is for a plugin that is defined elsewhere.
 */
export function definePlugin<const T extends readonly PluginTool[]>(
  plugin: ToolgatePlugin<T>,
): ToolgatePlugin {
  return plugin as unknown as ToolgatePlugin;
}

/**
 * Life-cycle hooks of a plugin. All of them may be asynchronous. An error that one throws is a `PluginError` with code
 * `PLUGIN_FAILED` that names the plugin and the hook; the hooks of other plugins are called all the same.
 */
export interface PluginHooks {
  /** The plugin was registered with `client.use`. Every request waits for it. */
  onRegister?(client: ToolgateClient): void | Promise<void>;
  /** A run is about to be started. The returned request is sent; plugins are called in the order of `use`. */
  beforeRequest?(request: StartRun): StartRun | Promise<StartRun>;
  /** A chat stream has ended. */
  afterResponse?(response: ChatResult): void | Promise<void>;
  /** A call of a tool without an executor. Return `undefined` if the plugin does not handle it. */
  onToolCall?(call: ToolCall): unknown;
  /** The plugin was removed. */
  onUnregister?(): void | Promise<void>;
}
