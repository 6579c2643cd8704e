import type { ApprovalRequest, ChatResult, Chunk, Finish, QuestionRequest, ToolResult } from './chunk.js';

/** Builds the complete result of a chat from its chunks. */
export class ChatResultBuilder {
  readonly #ids: { runId: string; spaceId: string };
  readonly #toolCalls: ChatResult['toolCalls'] = [];
  readonly #toolResults: ToolResult[] = [];
  readonly #approvals = new Map<string, ApprovalRequest>();
  readonly #questions = new Map<string, QuestionRequest>();
  /** Text of this step, and of the last step that had any. */
  #current = { text: '', reasoning: '' };
  #last = { text: '', reasoning: '' };

  constructor(runId: string, spaceId: string) {
    this.#ids = { runId, spaceId };
  }

  add(chunk: Chunk): void {
    switch (chunk.type) {
      case 'text':
      case 'reasoning':
        this.#current[chunk.type] += chunk.value;
        break;
      case 'step':
        this.#last = this.#text();
        this.#current = { text: '', reasoning: '' };
        break;
      case 'retry':
        this.#current = { text: '', reasoning: '' };
        break;
      case 'tool_call':
        this.#toolCalls.push(chunk.value);
        break;
      case 'tool_result':
        this.#toolResults.push(chunk.value);
        // A call that has ended asks nothing any more.
        for (const { questionId, toolCallId } of this.#questions.values())
          if (toolCallId === chunk.value.toolCallId) this.#questions.delete(questionId);
        break;
      case 'approval':
        this.#approvals.set(chunk.value.approvalId, chunk.value);
        break;
      case 'approval_decided':
        this.#approvals.delete(chunk.value.approvalId);
        break;
      case 'question':
        this.#questions.set(chunk.value.questionId, chunk.value);
        break;
      case 'question_answered':
        this.#questions.delete(chunk.value.questionId);
        break;
      default:
        break;
    }
  }

  result(finish: Finish): ChatResult {
    return {
      ...this.#ids,
      ...this.#text(),
      toolCalls: this.#toolCalls,
      toolResults: this.#toolResults,
      approvals: [...this.#approvals.values()],
      questions: [...this.#questions.values()],
      finish,
    };
  }
  #text(): { text: string; reasoning: string } {
    return {
      text: this.#current.text || this.#last.text,
      reasoning: this.#current.reasoning || this.#last.reasoning,
    };
  }
}
