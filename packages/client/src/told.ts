import type { ApprovalRequest, ChatResult, Chunk, Finish, ToolResult } from './chunk.js';

/** Everything a stream has told, kept for those who want the whole. */
export class Told {
  readonly #ids: { runId: string; spaceId: string };
  readonly #toolCalls: ChatResult['toolCalls'] = [];
  readonly #toolResults: ToolResult[] = [];
  readonly #approvals = new Map<string, ApprovalRequest>();
  /** The words of this step, and of the last one that had any. */
  #said = { text: '', reasoning: '' };
  #last = { text: '', reasoning: '' };

  constructor(runId: string, spaceId: string) {
    this.#ids = { runId, spaceId };
  }

  note(chunk: Chunk): void {
    switch (chunk.type) {
      case 'text':
      case 'reasoning':
        this.#said[chunk.type] += chunk.value;
        break;
      case 'step':
        this.#last = this.#words();
        this.#said = { text: '', reasoning: '' };
        break;
      case 'retry':
        this.#said = { text: '', reasoning: '' };
        break;
      case 'tool_call':
        this.#toolCalls.push(chunk.value);
        break;
      case 'tool_result':
        this.#toolResults.push(chunk.value);
        break;
      case 'approval':
        this.#approvals.set(chunk.value.approvalId, chunk.value);
        break;
      case 'approval_decided':
        this.#approvals.delete(chunk.value.approvalId);
        break;
      default:
        break;
    }
  }

  result(finish: Finish): ChatResult {
    return {
      ...this.#ids,
      ...this.#words(),
      toolCalls: this.#toolCalls,
      toolResults: this.#toolResults,
      approvals: [...this.#approvals.values()],
      finish,
    };
  }
  #words(): { text: string; reasoning: string } {
    return {
      text: this.#said.text || this.#last.text,
      reasoning: this.#said.reasoning || this.#last.reasoning,
    };
  }
}
