import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Activity } from 'lucide-react';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { onRunChange } from '../../data/live-runs.tsx';
import { LinkButton } from '../../ui/button.tsx';
import { shortId } from '../../ui/format.ts';
import { Panel, Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { isEnded, STATUSES, StatusBadge } from '../../ui/status.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './overview.module.css';

const SHOWN_MAX = 8;
const OPEN = STATUSES.filter((status) => !isEnded(status));
const KEY = ['runs', 'open', SHOWN_MAX] as const;

/** The runs that have not ended, newest first; changes as they do. */
export function LiveRunList() {
  const client = useClient();
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: KEY,
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        OPEN.map((status) => client.runs.list({ status, limit: SHOWN_MAX }, { signal })),
      );
      const runs = pages.flatMap((page) => page.runs);
      // Ids grow with time.
      return runs.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, SHOWN_MAX);
    },
  });
  useEffect(() => onRunChange(() => void queries.invalidateQueries({ queryKey: KEY })), [queries]);
  return (
    <Section
      title="Live runs"
      actions={
        <LinkButton size="small" variant="ghost" href="/runs">
          All runs
        </LinkButton>
      }
    >
      <Panel>
        {error && !data ? (
          <ErrorState error={error} retry={() => void refetch()} />
        ) : !data ? (
          <Loading rows={4} />
        ) : data.length === 0 ? (
          <Empty
            icon={<Activity />}
            title="Nothing runs"
            actions={
              <LinkButton variant="primary" href="/chat">
                Start a chat
              </LinkButton>
            }
          >
            Runs that work or wait are listed here while they last.
          </Empty>
        ) : (
          <ul>
            {data.map(({ id, agent, title, status, updatedAt }) => (
              <li key={id}>
                <Link href={`/runs/${id}`} className={styles.run}>
                  <span className={styles.runTitle}>{showControls(title || shortId(id))}</span>
                  <span className={styles.runAgent}>{agent}</span>
                  <StatusBadge status={status} />
                  <span className={styles.runTime}>
                    <RelativeTime time={updatedAt} />
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </Section>
  );
}
