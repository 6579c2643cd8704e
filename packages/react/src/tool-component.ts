import type { ComponentType } from 'react';
import type { ToolCall, ToolCallState } from './message.js';

/** What a tool's own component is given. */
export interface ToolComponentProps<Input = unknown, Output = unknown> {
  readonly call: ToolCall;
  /** Absent until the model has written it whole; `call.inputText` grows meanwhile. */
  readonly input: Input | undefined;
  readonly output: Output | undefined;
  readonly state: ToolCallState;
  /** What the executor last told about how far it is. */
  readonly progress: unknown;
  /** Whether a result can be given now: a client call that is open. */
  readonly isOpen: boolean;
  /** Gives the result, which makes the component the tool's executor. The first result counts. */
  readonly submit: (result: Output) => Promise<void>;
  /** Tells the model that there is no result, and why. */
  readonly fail: (message: string) => Promise<void>;
  /** Tells everybody in the space how far it is. */
  readonly report: (progress: unknown) => Promise<void>;
}

/** Components by tool name. One that is missing is shown as a plain tool card. */
// biome-ignore lint/suspicious/noExplicitAny: each component knows the input and output of its own tool
export type ToolComponents = Readonly<Record<string, ComponentType<ToolComponentProps<any, any>>>>;
