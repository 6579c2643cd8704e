/** Where a tool runs; only `client` calls are for us to execute. */
export type Placement = 'client' | 'server' | 'plugin' | 'mcp';

/** How far a call is. The last three are final. */
export type ToolCallState =
  | 'input-streaming'
  | 'input-available'
  | 'approval-requested'
  | 'executing'
  | 'output-available'
  | 'output-error'
  | 'output-denied';

/** A question to a person: may this call run? */
export interface Approval {
  readonly id: string;
  readonly callId: string;
  readonly runId: string;
  readonly toolName: string;
  readonly state: 'requested' | 'approved' | 'rejected' | 'expired';
  /** What the model wants to give the tool; absent when the gateway hides it from this user. */
  readonly input?: unknown;
  readonly expiresAt: string;
  /** Why it was rejected, in the words of whoever did. */
  readonly reason?: string;
}

/** One use of a tool by the model. */
export interface ToolCall {
  readonly id: string;
  readonly runId: string;
  readonly spaceId: string;
  readonly name: string;
  readonly placement: Placement;
  readonly state: ToolCallState;
  /** The input as JSON text, while it streams in. */
  readonly inputText: string;
  /** The whole input; absent until the model has written it, or when the gateway hides it from this user. */
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
  /** What the executor last told about how far it is. */
  readonly progress?: unknown;
  readonly approval?: Approval;
  /** The client that executes it. */
  readonly claim?: { readonly holder: string; readonly until: string };
  /** When a client's answer must be there. Only a call that is open for clients has one. */
  readonly deadline?: string;
}

/** One piece of a message. */
export type MessagePart =
  | { readonly type: 'text'; readonly id: string; readonly text: string; readonly streaming: boolean }
  | { readonly type: 'reasoning'; readonly id: string; readonly text: string; readonly streaming: boolean }
  | { readonly type: 'tool-call'; readonly id: string; readonly call: ToolCall }
  | { readonly type: 'image'; readonly id: string; readonly url: string; readonly mediaType?: string }
  | { readonly type: 'data'; readonly id: string; readonly name: string; readonly data: unknown };

/** Something somebody said: a person, the agent, or the gateway itself (`notice`). */
export interface Message {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'notice';
  readonly parts: readonly MessagePart[];
  /** `sending` and `failed` are messages of this page that the gateway has not taken. */
  readonly state: 'sending' | 'failed' | 'streaming' | 'done';
  readonly time: string;
  readonly runId?: string;
  /** The entity that wrote it; absent for a backend that speaks for nobody. */
  readonly from?: string;
  /** The call whose child run this belongs to. Such messages are work behind the scenes, not conversation. */
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

/** One activation of the agent, as far as the space's events tell. */
export interface Run {
  readonly id: string;
  readonly spaceId: string;
  readonly agent: string;
  readonly status: RunStatus;
  /** Which model reply it is at, counted from 1. */
  readonly step: number;
  /** Why it ended, once it has. */
  readonly reason?: string;
  readonly error?: string;
  readonly parentCallId?: string;
}

/** Whether nothing more will happen in it. */
export function isFinished(status: RunStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** Whether the call has its one outcome. */
export function isSettled(state: ToolCallState): boolean {
  return state === 'output-available' || state === 'output-error' || state === 'output-denied';
}
