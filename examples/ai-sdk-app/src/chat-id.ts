import type { UIMessage } from 'ai';
import { useEffect, useState } from 'react';
import { freshId } from './fresh-id.ts';

/** The chat's id stands in the address, so that a reload, or the same address in another tab, goes on with it. */
export function useChatId(): [id: string, begin: () => void] {
  const [id, setId] = useState(() => location.hash.slice(1) || freshId());
  useEffect(() => {
    history.replaceState(null, '', `#${id}`);
    const moved = () => setId(location.hash.slice(1) || freshId());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, [id]);
  return [id, () => setId(freshId())];
}

/** The chat so far, without the answer under way; none for one that has not begun. */
export async function loadPast(id: string): Promise<UIMessage[]> {
  const response = await fetch(`/api/chat/${encodeURIComponent(id)}`);
  if (response.status === 404) return [];
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()).messages;
}

/** The chat so far, once it is loaded, or why it is not; `again` loads it anew. */
export function usePast(id: string): { past?: UIMessage[]; problem?: Error; again: () => void } {
  const [loaded, setLoaded] = useState<{ id: string; past?: UIMessage[]; problem?: Error }>({ id });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    // A newer chat, or attempt, takes over.
    let isCurrent = true;
    const keep = (found: { past?: UIMessage[]; problem?: Error }) => isCurrent && setLoaded({ id, ...found });
    loadPast(id).then(
      (past) => keep({ past }),
      (problem) => keep({ problem }),
    );
    return () => {
      isCurrent = false;
    };
  }, [id, attempt]);
  const { past, problem } = loaded.id === id ? loaded : {};
  return {
    ...(past && { past }),
    ...(problem && { problem }),
    again: () => setAttempt((count) => count + 1),
  };
}
