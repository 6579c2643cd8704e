import type { UIMessage } from '@sdk/ai';

/** What the test says in the page's address. */
const asked = new URLSearchParams(location.search);
const text = (name: string): string => asked.get(name) ?? '';

const gateway = text('gateway');
export const chatId: string = text('chat');
export const dialect: string = text('dialect');
export const api: string = `${gateway}/v1/agents/${text('agent')}/chat`;
export const headers: Record<string, string> = {
  'x-public-key': text('key'),
  authorization: `Bearer ${text('token')}`,
};

/** The chat so far, without the answer under way. */
export async function loadPast(): Promise<UIMessage[]> {
  const response = await fetch(`${api}/${chatId}`, { headers });
  return (await response.json()).messages;
}

/** Says yes or no to a call; `input` is what it shall run with instead. */
export async function decide(
  approvalId: string,
  decision: { approved: boolean; input?: unknown },
): Promise<void> {
  await fetch(`${gateway}/v1/approvals/${approvalId}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(decision),
  });
}

/** Stops the agent. `stop()` of `useChat` only stops listening to it. */
export async function cancel(messages: UIMessage[]): Promise<void> {
  const run = messages.at(-1)?.parts.findLast((part) => part.type === 'data-run');
  const { runId } = (run as { data: { runId: string } }).data;
  await fetch(`${gateway}/v1/runs/${runId}/cancel`, { method: 'POST', headers });
}
