import type { ChatResult } from './chunk.js';
import type { ToolgateClient } from './client.js';
import type { ClientToolDefinition, RunnableTool, ToolCall, ToolExecutor } from './tool.js';
import type { StartRun } from './wire.js';

/** A set of tools with life-cycle hooks. */
export interface ToolgatePlugin {
  /** Unique among the plugins of a client. */
  name: string;
  /** Version, `major.minor.patch`. */
  version: string;
  /** The tool definitions. Read again after `onRegister`, which may add some. */
  tools?: Array<ClientToolDefinition | RunnableTool>;
  /** The executors, by tool name. */
  executors?: Record<string, ToolExecutor<never>>;
  /** Plugins that must be registered first, by name, each with a version range such as `^1.2`. */
  dependencies?: Record<string, string>;
  /** Range of gateway versions that it works with, such as `>=0.1`. */
  engine?: string;
  /** Default timeout of the plugin's executors, in milliseconds. */
  timeout?: number;
  hooks?: PluginHooks;
}

/** Life-cycle hooks of a plugin. All of them may be asynchronous. */
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
