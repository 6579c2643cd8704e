import type { ChatResult } from './chunk.js';
import type { ToolgateClient } from './client.js';
import type { ClientToolDefinition, RunnableTool, ToolCall, ToolExecutor } from './tool.js';
import type { StartRun } from './wire.js';

/** Tools that belong together, and what should happen around them. */
export interface ToolgatePlugin {
  /** Unique among the plugins of a client. */
  name: string;
  /** `major.minor.patch`. */
  version: string;
  /** What the model is offered. Read again after `onRegister`, which may fill it. */
  tools?: Array<ClientToolDefinition | RunnableTool>;
  /** What runs them, by tool name. */
  executors?: Record<string, ToolExecutor<never>>;
  /** Plugins that must be there first, by name, each with a version range such as `^1.2`. */
  dependencies?: Record<string, string>;
  /** The gateway versions it works with, such as `>=0.1`. */
  engine?: string;
  /** How long an executor of this plugin may take, in milliseconds, unless its tool says otherwise. */
  timeout?: number;
  hooks?: PluginHooks;
}

/** What a plugin may do at each moment of its life. All of them may be asynchronous. */
export interface PluginHooks {
  /** The plugin was given to `client.use`. Every request waits for it. */
  onRegister?(client: ToolgateClient): void | Promise<void>;
  /** A run is about to be started. What it returns is sent; plugins are asked in the order of `use`. */
  beforeRequest?(request: StartRun): StartRun | Promise<StartRun>;
  /** A chat stream has ended. */
  afterResponse?(response: ChatResult): void | Promise<void>;
  /** A call that no executor is registered for. `undefined` means: not mine. */
  onToolCall?(call: ToolCall): unknown;
  /** The plugin was removed. */
  onUnregister?(): void | Promise<void>;
}
