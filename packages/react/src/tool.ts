import type { ToolContext } from '@toolgate/client';

/** Does a tool's work. What it returns is the result; what it throws is the error that the model reads. */
// biome-ignore lint/suspicious/noExplicitAny: the input's shape is known to whoever wrote the schema
export type ToolHandler = (input: any, context: ToolContext) => unknown;

/** A tool with its definition: it is sent along with each message, so that the agent knows it. */
export interface ToolDefinition {
  readonly description: string;
  /** JSON Schema of the input, of type object. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** JSON Schema of the result. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** Milliseconds that `execute` may take; ten minutes unless said otherwise. */
  readonly timeout?: number;
  /** Leave it out when a component submits the result. */
  readonly execute?: ToolHandler;
}

/** Tools by name: a function for a tool that the agent has already, a definition for one that the page brings. */
export type Tools = Readonly<Record<string, ToolHandler | ToolDefinition>>;

/** What does a tool's work, and for how many milliseconds it may. */
export interface ToolWork {
  readonly execute: ToolHandler;
  readonly timeout?: number;
}

/** What does the work of `name`, if something here does. */
export function handlerOf(tools: Tools, name: string): ToolWork | undefined {
  const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (typeof tool === 'function') return { execute: tool };
  return tool?.execute && { execute: tool.execute, ...(tool.timeout && { timeout: tool.timeout }) };
}
