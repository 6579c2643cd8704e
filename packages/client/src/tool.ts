import type { FromSchema, JsonSchema, ToolParameters } from './json-schema.js';
import type { OutputOf, StandardSchema } from './standard-schema.js';

/** What the gateway and the model are told of a client tool. */
export interface ClientToolDefinition {
  /** `[A-Za-z_][A-Za-z0-9_-]{0,63}`, unique among the tools of a client. */
  name: string;
  /** What the model reads: 1 to 1024 characters. */
  description: string;
  /** JSON Schema of the arguments. */
  parameters: JsonSchema;
  /** JSON Schema of the result; a result that does not fit is refused. */
  outputSchema?: JsonSchema;
  /** How long the run waits for a result: seconds, or a text such as `30s` or `10m`. */
  timeout?: number | string;
}

/** A model's wish to use a tool. */
export interface ToolCall {
  toolCallId: string;
  toolName: string;
  args: Record<string, unknown>;
  runId?: string;
  spaceId?: string;
  /** When the run stops waiting, RFC 3339. */
  deadline?: string;
}

/** A call in whatever words its sender uses: `id`, `name`, `arguments` (an object or JSON text) are understood too. */
export interface ToolCallLike {
  toolCallId?: string;
  callId?: string;
  id?: string;
  toolName?: string;
  name?: string;
  args?: unknown;
  input?: unknown;
  arguments?: unknown;
  /** OpenAI's nesting. */
  function?: { name?: string; arguments?: unknown };
  runId?: string;
  spaceId?: string;
  deadline?: string;
}

/** What an executor knows beside its arguments. */
export interface ToolContext {
  toolCallId: string;
  toolName: string;
  runId?: string;
  spaceId?: string;
  /** Fires when the result is no longer wanted: time-out, cancel, a new message, a lost claim. */
  signal: AbortSignal;
  /** Tells everyone who watches how far it is: any JSON. Never throws; what is not delivered is dropped. */
  progress(value: unknown): Promise<void>;
}

/** Runs a tool. What it returns reaches the model; what it throws reaches the model as `{error}`. */
export type ToolExecutor<Args = Record<string, unknown>, Result = unknown> = (
  args: Args,
  context: ToolContext,
) => Result | Promise<Result>;

/** A tool with the code that runs it, its arguments described by JSON Schema. */
export interface SchemaTool<P extends ToolParameters = ToolParameters, Result = unknown> {
  name: string;
  description: string;
  /** JSON Schema of the arguments; their type is inferred from it. */
  parameters: P;
  /** JSON Schema or Standard Schema of the result. */
  output?: JsonSchema | StandardSchema;
  /** How long the executor may take, in milliseconds. */
  timeout?: number;
  execute: ToolExecutor<FromSchema<P>, Result>;
}

/** A tool with the code that runs it, its arguments described by zod, valibot, arktype or another Standard Schema library. */
export interface StandardTool<S extends StandardSchema = StandardSchema, Result = unknown> {
  name: string;
  description: string;
  /** Checks the arguments before `execute`; their type is inferred from it. */
  input: S;
  /** JSON Schema of the arguments, for libraries that cannot say it themselves. */
  parameters?: JsonSchema;
  /** JSON Schema or Standard Schema of the result. */
  output?: JsonSchema | StandardSchema;
  /** How long the executor may take, in milliseconds. */
  timeout?: number;
  execute: ToolExecutor<OutputOf<S>, Result>;
}

/** A tool ready to run, its argument types forgotten. */
export interface RunnableTool {
  definition: ClientToolDefinition;
  /** How long the executor may take, in milliseconds. */
  timeoutMs?: number;
  /** Checks the arguments, then runs. */
  execute: ToolExecutor;
}
