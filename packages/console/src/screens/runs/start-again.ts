import type { ToolgateClient, wire } from '@toolgate/client';
import { EMPTY_CONVERSATION, fold, type Message } from '@toolgate/react';

const PAGE = 500;
const PAGES_MAX = 20;
/** Of what was said before, the last messages are told to the new run. */
const HISTORY_MAX = 100;

/**
 * Starts a run with a message of another run, by default its first, in a new space that begins with what was said
 * before that message. The conversation that it comes from stays as it is. Returns the new run's id.
 */
export async function startAgain(
  client: ToolgateClient,
  events: readonly wire.Event[],
  messageId?: string,
): Promise<string | undefined> {
  const start = events.find((event) => event.type === 'run-start');
  const found = events.find(
    (event) => event.type === 'message' && (!messageId || event.message.messageId === messageId),
  );
  if (found?.type !== 'message') return undefined;
  const history = historyBefore(await messagesOf(client, found.spaceId), found.message.messageId);
  const posted = await client.runs.start({
    parts: found.message.parts,
    ...(start && { agent: start.agent }),
    ...(history.length > 0 && { history }),
  });
  return posted.runId ?? undefined;
}

async function messagesOf(client: ToolgateClient, spaceId: string): Promise<readonly Message[]> {
  let conversation = EMPTY_CONVERSATION;
  for (let after: number | undefined, page = 0; page < PAGES_MAX; page += 1) {
    const found = await client.spaces.events(spaceId, {
      limit: PAGE,
      ...(after !== undefined && { after }),
    });
    conversation = found.events.reduce(fold, conversation);
    if (found.events.length < PAGE || !found.nextCursor) break;
    after = found.nextCursor;
  }
  return conversation.messages;
}

/** The words that were said before a message, in the form in which a run is told its past. */
export function historyBefore(messages: readonly Message[], messageId: string): wire.ChatMessage[] {
  const at = messages.findIndex(({ id }) => id === messageId);
  return messages
    .slice(0, Math.max(at, 0))
    .flatMap(({ role, parts }) => {
      const content = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
      return role === 'notice' || content === '' ? [] : [{ role, content }];
    })
    .slice(-HISTORY_MAX);
}
