/** What the test says in the page's address. */
const asked = new URLSearchParams(location.search);
const text = (name: string): string => asked.get(name) ?? '';

export const chatId: string = text('chat');
export const dialect: string = text('dialect');
export const api: string = `${text('gateway')}/v1/agents/${text('agent')}/chat`;
export const headers: Record<string, string> = {
  'x-public-key': text('key'),
  authorization: `Bearer ${text('token')}`,
};

/** The chat so far, without the answer under way. */
export async function loadPast(): Promise<never[]> {
  const response = await fetch(`${api}/${chatId}`, { headers });
  return (await response.json()).messages;
}

export async function decide(approvalId: string, decision: object): Promise<void> {
  await fetch(`${text('gateway')}/v1/approvals/${approvalId}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(decision),
  });
}
