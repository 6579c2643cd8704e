/** A part of a message of the AI SDK, as far as it says what is asked and answered. */
interface AnswerablePart {
  type: string;
  toolCallId?: string;
  state?: string;
  providerExecuted?: boolean;
  approval?: unknown;
}

/** A message of the AI SDK. */
export interface AnswerableMessage {
  role: string;
  // Readonly and unknown, so that the types of every major fit.
  parts: readonly unknown[];
}

/**
 * A function for the AI SDK's `sendAutomaticallyWhen`, one for each chat: sends once everything is answered that the last
 * message asks, in whichever step, and each answer once. The SDK's own helpers look at the last step alone, and a question of
 * a child run stands in a step behind what the chat's own agent asks; beside a rejected call they never send a result.
 */
export function sendWhenAnswered(): (chat: { messages: readonly AnswerableMessage[] }) => boolean {
  const sent = new Set<string>();
  return ({ messages }) => {
    const message = messages.at(-1);
    if (message?.role !== 'assistant') return false;
    const parts = message.parts as readonly AnswerablePart[];
    const asked = parts.filter(isAsked);
    if (asked.some(isOpen)) return false;
    const lastStep = parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1);
    // The agent has gone on with another step: it has all the answers.
    if (!lastStep.some(isAsked)) return false;
    const fresh = asked.flatMap(answerOf).filter((answer) => !sent.has(answer));
    for (const answer of fresh) sent.add(answer);
    return fresh.length > 0;
  };
}

/** Whether a part is a call that the client executes, or that a person decides on. */
function isAsked(part: AnswerablePart): boolean {
  const isCall = part.type.startsWith('tool-') || part.type === 'dynamic-tool';
  return isCall && (part.providerExecuted !== true || part.approval !== undefined);
}

function isOpen({ state, providerExecuted }: AnswerablePart): boolean {
  if (state === 'approval-requested') return true;
  return providerExecuted !== true && (state === 'input-streaming' || state === 'input-available');
}

/** A client tool with an approval is answered twice: by the decision, then by its result. */
function answerOf({ toolCallId, state, providerExecuted }: AnswerablePart): string[] {
  if (state === 'approval-responded') return [`${toolCallId} decision`];
  // These two come from the gateway, which has the decision already.
  if (providerExecuted === true || state === 'output-denied') return [];
  return [`${toolCallId} result`];
}
