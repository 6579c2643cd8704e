import type { ToolCall, ToolContext } from './tool.js';
import type {
  MessageId,
  Placement,
  RunFinishEvent,
  RunId,
  SpaceId,
  Status,
  StepFinishEvent,
  Usage,
} from './wire.js';

/** One piece of a chat stream. A type that you do not know comes from a newer client: skip it. */
export type Chunk =
  | { type: 'start'; value: { runId: RunId; spaceId: SpaceId } }
  | { type: 'text'; value: string }
  | { type: 'reasoning'; value: string }
  /** The model broke off and is asked again: text and reasoning since the last `step` are void. */
  | { type: 'retry'; value: { step: number } }
  | { type: 'step'; value: { step: number } }
  | { type: 'tool_call'; value: ToolCall & { placement: Placement } }
  | { type: 'tool_progress'; value: { toolCallId: string; toolName: string; progress: unknown } }
  /** What a call gave, wherever it ran. `local` when this client ran it. */
  | { type: 'tool_result'; value: ToolResult }
  /** This client has run a tool. */
  | { type: 'tool_end'; value: ToolEnd }
  /** A person must decide; see `onApproval` and `client.approvals.decide`. */
  | { type: 'approval'; value: ApprovalRequest }
  | {
      type: 'approval_decided';
      value: { approvalId: string; toolCallId: string; approved: boolean; reason?: string };
    }
  | { type: 'step_finish'; value: { step: number; reason: StepFinishEvent['reason']; usage: Usage } }
  | { type: 'finish'; value: Finish };

/** What a call gave. */
export interface ToolResult {
  toolCallId: string;
  toolName: string;
  /** Absent where it is not yours to see. A failed call has `{error}`. */
  result?: unknown;
  /** The words of the failure, when it failed. */
  error?: string;
  /** Whether this client ran it. */
  local: boolean;
}

/** This client has run a tool. */
export interface ToolEnd {
  toolCallId: string;
  toolName: string;
  args: Record<string, unknown>;
  result?: unknown;
  error?: string;
  durationMs: number;
}

/** A question to a person: may this call run? */
export interface ApprovalRequest {
  approvalId: string;
  toolCallId: string;
  toolName: string;
  input?: unknown;
  expiresAt?: string;
}

/** A person's answer. */
export type ApprovalDecision = { approved: true; input?: unknown } | { approved: false; reason?: string };

/** How a chat stream ended. */
export interface Finish {
  /**
   * The run's own reason, or what it waits for: `tool-calls` (calls that this client does not run, or too many
   * rounds), `approval` (a person).
   */
  reason: RunFinishEvent['reason'] | 'tool-calls' | 'approval';
  status: Status;
  usage?: Usage;
  /** Why it failed. */
  error?: string;
  /** Calls that are still open. */
  pending: ToolCall[];
}

/** A whole chat answer. */
export interface ChatResult {
  runId: RunId;
  spaceId: SpaceId;
  /** The last words: those of the last step that had any. */
  text: string;
  /** The last thoughts, the same way. */
  reasoning: string;
  toolCalls: Array<ToolCall & { placement: Placement }>;
  toolResults: ToolResult[];
  approvals: ApprovalRequest[];
  finish: Finish;
}

/** Who said what. */
export interface ChatMessage {
  role: 'user' | 'assistant' | 'system';
  content: string | ChatPart[];
}

/** Words or an image. */
export type ChatPart = { type: 'text'; text: string } | { type: 'image'; url: string; mediaType?: string };

/** What `chatStream` and `chat` take. */
export interface ChatOptions {
  /** The conversation; the last message is the new one. */
  messages?: ChatMessage[];
  /** The new message, when that is all. */
  message?: string | ChatPart[];
  /** Who answers; otherwise the client's, the space's or the project's agent. */
  agent?: string;
  /** Where; otherwise the space of an earlier call whose messages these continue, or a new one. */
  space?: string;
  /** Of the agent's own client tools only those of these categories, and those of none. */
  selectedToolCategories?: string[];
  /** How often this client runs tools before it hands the run back; 5, and 0 for no limit. */
  maxToolRounds?: number;
  /** Runs the calls instead of the executors. `client.execute(call, context)` does what would have been done. */
  onToolCall?: (call: ToolCall, context: ToolContext) => unknown;
  /** Decides approvals. Without it `chatStream` waits for somebody who does, and `chat` ends with `approval`. */
  onApproval?: (request: ApprovalRequest) => ApprovalDecision | Promise<ApprovalDecision>;
  /** Whether to go on waiting while a person decides. */
  waitForApproval?: boolean;
  /** Whether to go on waiting for calls that others run: another tab, a worker. Without it they end the stream. */
  waitForTools?: boolean;
  /** Attached to the message; never given to a model. */
  metadata?: Record<string, unknown>;
  /** The same id again is the same message. */
  messageId?: MessageId;
  /** Ends the stream. The run goes on; `client.runs.cancel` stops it. */
  signal?: AbortSignal;
}
