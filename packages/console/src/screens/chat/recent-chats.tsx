import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { RunRow } from '@toolgate/client';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { onRunChange } from '../../data/live-runs.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './chat.module.css';

const RUNS_MAX = 60;

/** The conversations of late, newest first: one row per space. */
export function useRecentChats(spaceId: string | undefined): RunRow[] | undefined {
  const client = useClient();
  const queries = useQueryClient();
  const recent = useQuery({
    queryKey: ['recent-chats'],
    queryFn: async ({ signal }) =>
      firstOfEachSpace((await client.runs.list({ top: true, limit: RUNS_MAX }, { signal })).runs),
  });
  useEffect(
    () => onRunChange(() => void queries.invalidateQueries({ queryKey: ['recent-chats'] })),
    [queries],
  );
  useEffect(() => {
    if (spaceId) void queries.invalidateQueries({ queryKey: ['recent-chats'] });
  }, [queries, spaceId]);
  return recent.data;
}

/** What a conversation is called: the words that it began with. */
export function chatTitle(run: RunRow): string {
  return showControls(run.title || `With ${run.agent}`);
}

/** The conversations beside the chat, where there is room for them. */
export function RecentChats({ spaceId }: { readonly spaceId: string | undefined }) {
  const recent = useRecentChats(spaceId);
  return (
    <nav className={styles.recent} aria-label="Recent conversations">
      <div className={styles.recentHead}>
        <h2>Recent</h2>
      </div>
      <ul className={styles.recentList}>
        {recent?.map((run) => (
          <li key={run.spaceId}>
            <Link
              href={`/chat/${run.spaceId}`}
              className={styles.recentItem}
              aria-current={run.spaceId === spaceId ? 'page' : undefined}
            >
              <span className={styles.recentTitle}>{chatTitle(run)}</span>
              <span className={styles.recentMeta}>
                {run.agent} · <RelativeTime time={run.updatedAt} />
              </span>
            </Link>
          </li>
        ))}
        {recent?.length === 0 && (
          <li className={styles.recentNone}>Conversations appear here after the first message.</li>
        )}
      </ul>
    </nav>
  );
}

/** One row per space, with the title of its first run; runs that only call a tool are left out. */
function firstOfEachSpace(runs: readonly RunRow[]): RunRow[] {
  const spaces = new Map<string, RunRow>();
  for (const run of runs) {
    if (run.tool || run.parent) continue;
    const newer = spaces.get(run.spaceId);
    spaces.set(run.spaceId, newer ? { ...newer, title: run.title ?? null } : run);
  }
  return [...spaces.values()];
}
