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

/** One item of a chat stream. Skip types that you do not know: they come from a newer client. */
export type Chunk =
  | { type: 'start'; value: { runId: RunId; spaceId: SpaceId } }
  | { type: 'text'; value: string }
  | { type: 'reasoning'; value: string }
  /** The model's reply broke off and is requested again: discard text and reasoning since the last `step`. */
  | { type: 'retry'; value: { step: number } }
  | { type: 'step'; value: { step: number } }
  | { type: 'tool_call'; value: ToolCall & { placement: Placement } }
  | { type: 'tool_progress'; value: { toolCallId: string; toolName: string; progress: unknown } }
  /** The outcome of a call, wherever it ran. `local` if this client executed it. */
  | { type: 'tool_result'; value: ToolResult }
  /** This client has executed a tool. */
  | { type: 'tool_end'; value: ToolEnd }
  /** A call waits for approval; see `onApproval` and `client.approvals.decide`. */
  | { type: 'approval'; value: ApprovalRequest }
  | {
      type: 'approval_decided';
      value: { approvalId: string; toolCallId: string; approved: boolean; reason?: string };
    }
  /** A tool asks something in the middle of a call; see `client.questions.answer`. */
  | { type: 'question'; value: QuestionRequest }
  | {
      type: 'question_answered';
      value: { questionId: string; toolCallId: string; action: QuestionAction };
    }
  | { type: 'step_finish'; value: { step: number; reason: StepFinishEvent['reason']; usage: Usage } }
  | { type: 'finish'; value: Finish };

/** The outcome of a call. */
export interface ToolResult {
  toolCallId: string;
  toolName: string;
  /** Absent if redacted for this user. A failed call has `{error}`. */
  result?: unknown;
  /** The error message, if the call failed. */
  error?: string;
  /** What whoever uses the tool should know, such as that it is deprecated. */
  warning?: string;
  /** Whether this client executed it. */
  local: boolean;
}

/** An execution of a tool by this client. */
export interface ToolEnd {
  toolCallId: string;
  toolName: string;
  args: Record<string, unknown>;
  result?: unknown;
  error?: string;
  durationMs: number;
}

/** A request for approval of a call. */
export interface ApprovalRequest {
  approvalId: string;
  toolCallId: string;
  toolName: string;
  input?: unknown;
  expiresAt?: string;
}

/** A decision on an approval. */
export type ApprovalDecision =
  | {
      approved: true;
      input?: unknown;
      /** Whether the yes stands for later calls too; as the tool says unless given. */
      remember?: boolean;
    }
  | { approved: false; reason?: string };

/** A question that a tool asks in the middle of a call. */
export interface QuestionRequest {
  questionId: string;
  toolCallId: string;
  toolName: string;
  /** What is asked, in words. */
  message: string;
  /** JSON Schema of the answer's content, when a form is to be filled in. */
  schema?: unknown;
  /** The page to visit instead. */
  url?: string;
  expiresAt: string;
}

/** What is done with a question. */
export type QuestionAction = 'accept' | 'decline' | 'cancel';

/** An answer to a question: `content` with `accept` of one that has a schema, and never else. */
export type QuestionAnswer =
  | { action: 'accept'; content?: unknown }
  | { action: 'decline' }
  | { action: 'cancel' };

/** How a chat stream ended. */
export interface Finish {
  /**
   * The run's own reason, or what it waits for: `tool-calls` (calls that this client does not execute, or
   * `maxToolRounds` is reached), `approval` (a person decides on a call, or answers a tool's question).
   */
  reason: RunFinishEvent['reason'] | 'tool-calls' | 'approval';
  status: Status;
  usage?: Usage;
  /** The error of a failed run. */
  error?: string;
  /** Calls that are still open. */
  pending: ToolCall[];
}

/** The complete result of a chat. */
export interface ChatResult {
  runId: RunId;
  spaceId: SpaceId;
  /** Text of the last step that had any. */
  text: string;
  /** Reasoning of the last step that had any. */
  reasoning: string;
  toolCalls: Array<ToolCall & { placement: Placement }>;
  toolResults: ToolResult[];
  approvals: ApprovalRequest[];
  /** Questions of tools that nobody has answered. */
  questions: QuestionRequest[];
  finish: Finish;
}

/** A message of a conversation. */
export interface ChatMessage {
  role: 'user' | 'assistant' | 'system';
  content: string | ChatPart[];
}

/** A text or an image. */
export type ChatPart = { type: 'text'; text: string } | { type: 'image'; url: string; mediaType?: string };

/** Options of `chatStream` and `chat`. */
export interface ChatOptions {
  /** The conversation; the last message is the new one. */
  messages?: ChatMessage[];
  /** The new message, if there is no conversation to send. */
  message?: string | ChatPart[];
  /** The agent that answers; by default the client's, the space's or the project's agent. */
  agent?: string;
  /** The space; by default the one of an earlier chat whose messages these continue, or a new one. */
  space?: string;
  /** Names of this client's tools that the model is offered; all of them by default. */
  only?: string[];
  /** Selects among the agent's own client tools: those of these categories, and those without a category. */
  selectedToolCategories?: string[];
  /** Steps in which this client executes tools before the stream ends; 5 by default, 0 for no limit. */
  maxToolRounds?: number;
  /**
   * Executes the calls instead of the executors. `client.execute(call, context)` runs the default executor.
   */
  onToolCall?: (call: ToolCall, context: ToolContext) => unknown;
  /**
   * Decides approvals. Without it `chatStream` waits until somebody else decides, and `chat` ends with
   * `approval`.
   */
  onApproval?: (request: ApprovalRequest) => ApprovalDecision | Promise<ApprovalDecision>;
  /** Whether to keep the stream open while an approval is undecided. */
  waitForApproval?: boolean;
  /**
   * Whether to keep the stream open for calls that others execute: another tab, a worker. Without it such
   * calls end the stream.
   */
  waitForTools?: boolean;
  /** Data to attach to the message; never sent to a model. */
  metadata?: Record<string, unknown>;
  /** Idempotency key: a message with the same id is processed once. */
  messageId?: MessageId;
  /** Ends the stream. The run continues; `client.runs.cancel` cancels it. */
  signal?: AbortSignal;
}
