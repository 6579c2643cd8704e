import type { CallerContext } from './caller-contexts.js';
import type { HistoryMessage, HistoryOptions } from './conversation-history.js';
import type { FromSchema, JsonSchema, ToolParameters } from './json-schema.js';
import type { OutputOf, StandardSchema } from './standard-schema.js';
import type { Member } from './wire.js';

/** A client tool's definition, as the gateway and the model see it. */
export interface ClientToolDefinition {
  /** `[A-Za-z_][A-Za-z0-9_-]{0,63}`, unique among the tools of a client. */
  name: string;
  /** What it does and when to use it, for the model: 1 to 1024 characters. */
  description: string;
  /** JSON Schema of the arguments. */
  parameters: JsonSchema;
  /** JSON Schema of the result; a result that does not match is rejected. */
  outputSchema?: JsonSchema;
  /**
   * How long the run waits for a result: milliseconds, as every `timeout` of this package, or a string with its unit such as
   * `30s` or `10m`. Ten minutes by default.
   */
  timeout?: number | string;
  /** The author's number for this state of the tool; any string. */
  version?: string;
  /** Set when the tool should not be used any more: `true`, or what to use instead. A warning travels with its results. */
  deprecated?: string | boolean;
}

/** A call of a tool by the model. */
export interface ToolCall {
  toolCallId: string;
  /** The name under which this client registered the tool. The run may call it something else: `client_<name>`. */
  toolName: string;
  args: Record<string, unknown>;
  runId?: string;
  spaceId?: string;
  /** When the run stops waiting, RFC 3339. */
  deadline?: string;
}

/**
 * A call with any of the usual member names: `id`, `name`, `arguments` (an object or JSON text) are accepted
 * too.
 */
export interface ToolCallLike {
  toolCallId?: string;
  callId?: string;
  id?: string;
  toolName?: string;
  name?: string;
  /** The name under which the tool was registered, where the run had to rename it; goes before the others. */
  givenName?: string | null | undefined;
  args?: unknown;
  input?: unknown;
  arguments?: unknown;
  /** OpenAI's nested form. */
  function?: { name?: string; arguments?: unknown };
  runId?: string;
  spaceId?: string;
  deadline?: string;
}

/**
 * The context of an execution. Members of `CallerContext` are set only if the call was made by this client too, with
 * `ToolOrchestrator.execute` or with the `context` of `tools.call`.
 */
export interface ToolContext extends CallerContext {
  toolCallId: string;
  toolName: string;
  runId?: string;
  spaceId?: string;
  /** The same as `spaceId`. */
  sessionId?: string;
  /** The same as `spaceId`. */
  conversationId?: string;
  /**
   * Reads what was said in the space, oldest first, as far as this client may see it: at most 50 messages of the last 50 runs.
   * Empty outside of a space.
   */
  history(options?: HistoryOptions): Promise<HistoryMessage[]>;
  /**
   * Reads the member of the space whom the call is for: its name and metadata, its role and its permissions. `undefined` if the
   * call is for nobody in particular. Needs a secret key.
   */
  member(): Promise<Member | undefined>;
  /** Fires when the result is no longer wanted: timeout, cancellation, a new message, a lost lease. */
  signal: AbortSignal;
  /**
   * Reports progress, as any JSON, to everyone who watches the run. Never throws; reports that cannot be
   * delivered are dropped.
   */
  progress(value: unknown): Promise<void>;
}

/** The same as `ToolContext`, as programs with a registry of their own call it. */
export type ToolExecutionContext = ToolContext;

/** Executes a tool. The returned value is the result; a thrown error reaches the model as `{error}`. */
export type ToolExecutor<Args = Record<string, unknown>, Result = unknown> = (
  args: Args,
  context: ToolContext,
) => Result | Promise<Result>;

/** A tool with its executor, its arguments described by JSON Schema. */
export interface SchemaTool<P extends ToolParameters = ToolParameters, Result = unknown> {
  name: string;
  description: string;
  /** JSON Schema of the arguments; their type is inferred from it. */
  parameters: P;
  /** JSON Schema or Standard Schema of the result. */
  output?: JsonSchema | StandardSchema;
  /** Timeout of the executor: milliseconds, or a string with its unit such as `30s`. */
  timeout?: number | string;
  /** The author's number for this state of the tool; any string. */
  version?: string;
  /** Set when the tool should not be used any more: `true`, or what to use instead. */
  deprecated?: string | boolean;
  execute: ToolExecutor<FromSchema<P>, Result>;
}

/**
 * A tool with its executor, its arguments described by zod, valibot, arktype or another Standard Schema
 * library.
 */
export interface StandardTool<S extends StandardSchema = StandardSchema, Result = unknown> {
  name: string;
  description: string;
  /** Validates the arguments before `execute`; their type is inferred from it. */
  input: S;
  /** JSON Schema of the arguments, for libraries that cannot generate it. */
  parameters?: JsonSchema;
  /** JSON Schema or Standard Schema of the result. */
  output?: JsonSchema | StandardSchema;
  /** Timeout of the executor: milliseconds, or a string with its unit such as `30s`. */
  timeout?: number | string;
  /** The author's number for this state of the tool; any string. */
  version?: string;
  /** Set when the tool should not be used any more: `true`, or what to use instead. */
  deprecated?: string | boolean;
  execute: ToolExecutor<OutputOf<S>, Result>;
}

/** A tool ready to execute, without its argument types. */
export interface RunnableTool {
  definition: ClientToolDefinition;
  /** Timeout of the executor in milliseconds. */
  timeoutMs?: number;
  /** Validates the arguments, then executes. */
  execute: ToolExecutor;
}
