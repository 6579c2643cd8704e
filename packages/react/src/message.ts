import type { wire } from '@toolgate/client';

/** Where a tool runs; this page can execute `client` calls only. */
export type Placement = 'client' | 'server' | 'plugin' | 'mcp';

/** The state of a call. The last three are final. */
export type ToolCallState =
  | 'input-streaming'
  | 'input-available'
  | 'approval-requested'
  | 'executing'
  | 'output-available'
  | 'output-error'
  | 'output-denied';

/** An approval of a call. */
export interface Approval {
  readonly id: string;
  readonly callId: string;
  readonly runId: string;
  readonly toolName: string;
  readonly state: 'requested' | 'approved' | 'rejected' | 'expired';
  /** Whether this user may decide; others see the approval too, and wait for somebody who may. */
  readonly mayDecide: boolean;
  /** Whether this user may approve with another input. */
  readonly editable: boolean;
  /** The call's input; absent if redacted for this user. */
  readonly input?: unknown;
  readonly expiresAt: string;
  /** Why it was rejected. */
  readonly reason?: string;
  /** What is said aloud to whoever decides. */
  readonly voice?: string;
  /** Whether a yes stands for later calls too, and for which. */
  readonly remember?: 'first-in-space' | 'until-revoked';
  /** Who decided, where this user may know. */
  readonly by?: string;
  /** Whether the yes stands for later calls too. */
  readonly remembered?: boolean;
}

/** A question that a tool asks in the middle of a call. */
export interface Question {
  readonly id: string;
  readonly callId: string;
  readonly message: string;
  /** JSON Schema of the answer; absent for a question that only wants a yes, or a visit of `url`. */
  readonly schema?: unknown;
  /** The page to visit instead of an answer. */
  readonly url?: string;
  readonly expiresAt: string;
  readonly state: 'asked' | 'answered' | 'declined' | 'cancelled' | 'expired';
}

/** A call of a tool by the model. */
export interface ToolCall {
  readonly id: string;
  readonly runId: string;
  readonly spaceId: string;
  /** The name under which the tool was given: by the page, or by the agent's configuration. */
  readonly name: string;
  readonly placement: Placement;
  readonly state: ToolCallState;
  /** The input as JSON text, while it streams. */
  readonly inputText: string;
  /** The complete input; absent until the model has written it, or if redacted for this user. */
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
  /** The last progress report of the executor. */
  readonly progress?: unknown;
  readonly approval?: Approval;
  /** The client that sent the message: it is offered the call before others, until then. */
  readonly reserved?: { readonly holder: string; readonly until: string };
  /** The client that holds the lease. */
  readonly claim?: { readonly holder: string; readonly until: string };
  /** When a client's result must be there. Only a call that is open for clients has one. */
  readonly deadline?: string;
  /** Questions of the tool, oldest first. */
  readonly questions?: readonly Question[];
  /** The child run that carries the call on. */
  readonly childRunId?: string;
  /** The agent that asks, for a call of a child run that is shown in the run at the top. */
  readonly askedBy?: string;
  /** What the call waits for: a time, or a signal until then. */
  readonly pause?: { readonly until: string; readonly signal: boolean };
  /** When the model had written the input. */
  readonly requestedAt?: string;
  /** When it began to execute, the last time. */
  readonly startedAt?: string;
  /** When it settled. */
  readonly endedAt?: string;
  /** `seq` of the event that settled it. */
  readonly endedSeq?: number;
  /** What the tool's code has logged. */
  readonly log?: string;
  /** A warning that came with the output, such as that the tool is deprecated. */
  readonly warning?: string;
  /** What is said aloud of its output. */
  readonly voice?: string;
  /** The remembered yes that it runs by, where nobody was asked. */
  readonly consent?: { readonly consentId: string; readonly by?: string; readonly givenAt: string };
}

/** One part of a message. */
export type MessagePart =
  | { readonly type: 'text'; readonly id: string; readonly text: string; readonly streaming: boolean }
  | { readonly type: 'reasoning'; readonly id: string; readonly text: string; readonly streaming: boolean }
  | { readonly type: 'tool-call'; readonly id: string; readonly call: ToolCall }
  | { readonly type: 'image'; readonly id: string; readonly url: string; readonly mediaType?: string }
  | { readonly type: 'data'; readonly id: string; readonly name: string; readonly data: unknown };

/** A message of a person, of the agent, or of the gateway itself (`notice`). */
export interface Message {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'notice';
  readonly parts: readonly MessagePart[];
  /** `sending` and `failed` are messages of this page that the gateway has not stored. */
  readonly state: 'sending' | 'failed' | 'streaming' | 'done';
  readonly time: string;
  readonly runId?: string;
  /** The entity that wrote it; absent for a backend that acts for no entity. */
  readonly from?: string;
  /** What posted it, where no person and no backend did: a plan that was due. */
  readonly origin?: NonNullable<wire.Message['origin']>;
  /** The call whose child run this belongs to. Such messages are not part of the conversation. */
  readonly parentCallId?: string;
}

export type RunStatus =
  | 'queued'
  | 'running'
  | 'waiting_tool'
  | 'waiting_approval'
  | 'waiting_time'
  | 'completed'
  | 'failed'
  | 'cancelled';

/** One activation of the agent, as far as the space's events show. */
export interface Run {
  readonly id: string;
  readonly spaceId: string;
  readonly agent: string;
  readonly status: RunStatus;
  /** The current step, counted from 1. */
  readonly step: number;
  /** Why it ended, if it has. */
  readonly reason?: string;
  readonly error?: string;
  readonly parentCallId?: string;
}

/** Whether the run has ended. */
export function isFinished(status: RunStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** Whether the call has its outcome. */
export function isSettled(state: ToolCallState): boolean {
  return state === 'output-available' || state === 'output-error' || state === 'output-denied';
}
