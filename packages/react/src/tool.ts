import { type FromSchema, readTimeout, type ToolContext, type ToolParameters } from '@toolgate/client';

/** Executes a tool. The returned value is the result; a thrown error is the error that the model reads. */
// biome-ignore lint/suspicious/noExplicitAny: the input's shape is known to whoever wrote the schema
export type ToolHandler = (input: any, context: ToolContext) => unknown;

/** A tool with its definition, which is sent with each message. */
export interface ToolDefinition {
  readonly description: string;
  /** JSON Schema of the input, of type object. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** JSON Schema of the result. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** Timeout of `execute`: milliseconds, or a string with its unit such as `30s`; ten minutes by default. */
  readonly timeout?: number | string;
  /** The author's number for this state of the tool; any string. */
  readonly version?: string;
  /** Set when the tool should not be used any more: `true`, or what to use instead. */
  readonly deprecated?: string | boolean;
  /** Leave it out if a component submits the result. */
  readonly execute?: ToolHandler;
}

/** A tool whose `execute` gets the input that its `parameters` describe. */
export interface TypedTool<P extends ToolParameters> extends Omit<ToolDefinition, 'parameters' | 'execute'> {
  readonly parameters: P;
  readonly execute?: (input: FromSchema<P>, context: ToolContext) => unknown;
}

/** The tool, with the type of its input inferred from `parameters`. For `tools` of the provider and of `useAutoToolHandler`. */
export function tool<const P extends ToolParameters>(definition: TypedTool<P>): ToolDefinition {
  return definition;
}

/**
 * Tools by name: a function for a client tool in the agent's configuration, or a definition for one that the
 * page adds.
 */
export type Tools = Readonly<Record<string, ToolHandler | ToolDefinition>>;

/** A tool's handler and its timeout. */
export interface ToolWork {
  readonly execute: ToolHandler;
  readonly timeoutMs?: number;
}

/** The handler of the tool `name`, if it has one. Throws a `PluginError` for a timeout that is none. */
export function handlerOf(tools: Tools, name: string): ToolWork | undefined {
  const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (typeof tool === 'function') return { execute: tool };
  if (!tool?.execute) return undefined;
  const { execute, timeout } = tool;
  return timeout === undefined ? { execute } : { execute, timeoutMs: readTimeout(`tool "${name}"`, timeout) };
}
