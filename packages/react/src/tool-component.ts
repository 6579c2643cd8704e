import type { ComponentType } from 'react';
import type { ToolCall, ToolCallState } from './message.js';

/** Props of a tool's own component. */
export interface ToolComponentProps<Input = unknown, Output = unknown> {
  readonly call: ToolCall;
  /** Absent until the model has written it completely; `call.inputText` grows meanwhile. */
  readonly input: Input | undefined;
  readonly output: Output | undefined;
  readonly state: ToolCallState;
  /** The last progress report of the executor. */
  readonly progress: unknown;
  /** Whether a result can be submitted now: the call is an open client call. */
  readonly isOpen: boolean;
  /** Submits the result, which makes the component the tool's executor. The first result wins. */
  readonly submit: (result: Output) => Promise<void>;
  /** Submits an error, which the model reads. */
  readonly fail: (message: string) => Promise<void>;
  /** Reports progress to everybody in the space. */
  readonly report: (progress: unknown) => Promise<void>;
}

/** Components by tool name. Tools without one are shown as the default card. */
// biome-ignore lint/suspicious/noExplicitAny: each component knows the input and output of its own tool
export type ToolComponents = Readonly<Record<string, ComponentType<ToolComponentProps<any, any>>>>;
