import type { OverviewHour } from '@toolgate/client';
import { formatCount } from '../../ui/format.ts';
import { Panel } from '../../ui/page.tsx';
import styles from './overview.module.css';
import { type Series, TimeChart } from './time-chart.tsx';

const RUNS: readonly Series[] = [
  { name: 'Completed', color: '--green-solid' },
  { name: 'Failed', color: '--red-solid' },
  { name: 'Cancelled', color: '--control' },
  { name: 'Open', color: '--blue-solid' },
];
const TOKENS: readonly Series[] = [{ name: 'Tokens', color: '--violet-solid' }];

/** Runs and tokens by the hour. A chunk of its own: it brings the chart library. */
export default function Charts({ hours }: { readonly hours: readonly OverviewHour[] }) {
  const times = hours.map(({ start }) => Date.parse(start) / 1000);
  return (
    <div className={styles.charts}>
      <Panel>
        <TimeChart
          title="Runs per hour"
          times={times}
          series={RUNS}
          values={[
            hours.map(({ completed }) => completed),
            hours.map(({ failed }) => failed),
            hours.map(({ cancelled }) => cancelled),
            hours.map(openRuns),
          ]}
          format={formatCount}
        />
      </Panel>
      <Panel>
        <TimeChart
          title="Tokens per hour"
          times={times}
          series={TOKENS}
          values={[hours.map(({ tokens }) => tokens)]}
          format={formatCount}
        />
      </Panel>
    </div>
  );
}

/** Runs of an hour that have not ended. */
export function openRuns({ started, completed, failed, cancelled }: OverviewHour): number {
  return Math.max(0, started - completed - failed - cancelled);
}
