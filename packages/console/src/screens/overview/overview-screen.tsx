import { useQuery } from '@tanstack/react-query';
import type { Overview } from '@toolgate/client';
import { lazy, Suspense } from 'react';
import { useClient } from '../../data/gateway.tsx';
import { formatCount, formatDuration } from '../../ui/format.ts';
import { Page, Panel, Section } from '../../ui/page.tsx';
import { ErrorState, Loading } from '../../ui/states.tsx';
import { ErrorCodes } from './error-codes.tsx';
import { Health } from './health.tsx';
import { LiveRunList } from './live-run-list.tsx';
import styles from './overview.module.css';
import { Stat } from './stat.tsx';

const REFRESH_MS = 5_000;

const Charts = lazy(() => import('./charts.tsx'));

/** How the project is doing: what runs and waits now, the last 24 hours, and the health of the parts. */
export default function OverviewScreen() {
  const client = useClient();
  const { data, error, refetch } = useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => client.gateway.overview({ signal }),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Page title="Overview" description="What runs now, and the last 24 hours" layout="padded">
      {data ? (
        <Figures overview={data} />
      ) : error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : (
        <Loading rows={10} />
      )}
    </Page>
  );
}

function Figures({ overview }: { readonly overview: Overview }) {
  const { runs, waiting, hours, tools } = overview;
  const started = sum(hours, ({ started }) => started);
  const failed = sum(hours, ({ failed }) => failed);
  return (
    <div className={styles.page}>
      <div className={styles.stats}>
        <Stat
          title="Running"
          value={formatCount(runs.running)}
          note={runs.queued > 0 ? `${formatCount(runs.queued)} queued` : 'none queued'}
          href="/runs?status=running"
        />
        <Stat
          title="Wait for a client"
          value={formatCount(waiting.calls)}
          note="calls of client tools"
          href="/runs?status=waiting_tool"
          tone={waiting.calls > 0 ? 'amber' : 'neutral'}
        />
        <Stat
          title="Wait for a person"
          value={formatCount(waiting.approvals)}
          note="approvals and questions"
          href="/inbox"
          tone={waiting.approvals > 0 ? 'amber' : 'neutral'}
        />
        <Stat
          title="Runs in 24 h"
          value={formatCount(started)}
          note={failed > 0 ? `${formatCount(failed)} failed` : 'none failed'}
          href="/runs"
          tone={failed > 0 ? 'red' : 'neutral'}
        />
        <Stat
          title="Tokens in 24 h"
          value={formatCount(sum(hours, ({ tokens }) => tokens))}
          note="read and written"
        />
        <Stat
          title="Tool calls"
          value={formatCount(tools.calls)}
          note={
            tools.latencyMs
              ? `half within ${formatDuration(tools.latencyMs.p50)}, 99 % within ${formatDuration(tools.latencyMs.p99)}`
              : 'no latency measured yet'
          }
        />
      </div>
      <Suspense fallback={<Loading rows={6} label="Loading charts" />}>
        <Charts hours={hours} />
      </Suspense>
      <div className={styles.columns}>
        <LiveRunList />
        <div>
          <ErrorCodes tools={tools} />
          <Section title="Health">
            <Panel>
              <Health health={overview.health} />
            </Panel>
          </Section>
        </div>
      </div>
    </div>
  );
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
