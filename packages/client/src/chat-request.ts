import type { ChatMessage, ChatOptions } from './chunk.js';
import { CODES, ValidationError } from './error.js';
import type { ClientToolDefinition } from './tool.js';
import type { StartRun } from './wire.js';

/** The messages of a chat; the last one is the new one. */
export function messagesOf({ messages, message }: ChatOptions): ChatMessage[] {
  const all: ChatMessage[] = [...(messages ?? [])];
  if (message !== undefined) all.push({ role: 'user', content: message });
  if (all.at(-1)?.role !== 'user') {
    const seen = all.length === 0 ? 'there is none' : `the last one is from "${all.at(-1)?.role}"`;
    const problem = `the last message must be from "user", ${seen}`;
    const errors = [{ pointer: '/messages', message: problem }];
    throw new ValidationError(CODES.validation, problem, { errors });
  }
  return all;
}

/**
 * The body that starts a run. Earlier messages are sent as history, which only agents with `history: client`
 * use.
 */
export function chatRequest(
  options: ChatOptions,
  messages: ChatMessage[],
  found: { agent: string | undefined; space: string | undefined },
  clientTools: ClientToolDefinition[],
  executor: StartRun['executor'],
): StartRun {
  const newest = messages.at(-1)?.content ?? '';
  const history = messages.slice(0, -1);
  return {
    ...(typeof newest === 'string' ? { message: newest } : { parts: newest }),
    ...(found.agent === undefined ? {} : { agent: found.agent }),
    ...(found.space === undefined ? {} : { spaceId: found.space }),
    ...(clientTools.length === 0 ? {} : { clientTools: clientTools as NonNullable<StartRun['clientTools']> }),
    ...(executor ? { executor } : {}),
    ...(options.selectedToolCategories ? { selectedToolCategories: options.selectedToolCategories } : {}),
    ...(options.metadata === undefined ? {} : { metadata: options.metadata }),
    ...(options.messageId === undefined ? {} : { messageId: options.messageId }),
    ...(history.length === 0 ? {} : { history }),
  };
}
