import { useMemo, useSyncExternalStore } from 'react';
import { useToolgateContext } from './context.js';
import { type ConversationSnapshot, EMPTY_SNAPSHOT } from './conversation-store.js';
import { spaceStore } from './space-store.js';

/** The messages and runs of a space, live. Without a space id, nothing. */
export function useSpace(spaceId: string | undefined): ConversationSnapshot {
  const { client } = useToolgateContext('useSpace');
  const store = useMemo(() => (spaceId ? spaceStore(client, spaceId) : NO_SPACE), [client, spaceId]);
  return useSyncExternalStore(store.subscribe, store.snapshot, store.serverSnapshot);
}

const NO_SPACE = {
  subscribe: () => () => {},
  snapshot: () => EMPTY_SNAPSHOT,
  serverSnapshot: () => EMPTY_SNAPSHOT,
};
