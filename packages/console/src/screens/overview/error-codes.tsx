import type { Overview } from '@toolgate/client';
import { CircleCheck } from 'lucide-react';
import { formatCount, formatDuration } from '../../ui/format.ts';
import { Panel, Section } from '../../ui/page.tsx';
import styles from './overview.module.css';

/** How tool calls have failed, most frequent code first, and how long calls take. */
export function ErrorCodes({ tools }: { readonly tools: Overview['tools'] }) {
  const codes = Object.entries(tools.failures).sort(([, a], [, b]) => b - a);
  const most = codes[0]?.[1] ?? 1;
  return (
    <Section title="Failed tool calls">
      <Panel>
        {codes.length === 0 ? (
          <p className={styles.fine}>
            <CircleCheck aria-hidden="true" /> No call has failed since{' '}
            {new Date(tools.since).toLocaleDateString(undefined, { dateStyle: 'medium' })}
          </p>
        ) : (
          <ul className={styles.codes}>
            {codes.map(([code, count]) => (
              <li key={code}>
                <code>{code}</code>
                <span>{formatCount(count)}</span>
                <progress
                  className={styles.codeBar}
                  value={count}
                  max={most}
                  aria-label={`${code}: ${count} calls`}
                />
              </li>
            ))}
          </ul>
        )}
        {tools.latencyMs && (
          <dl className={styles.latency}>
            {(['p50', 'p90', 'p99'] as const).map((name) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{formatDuration(tools.latencyMs?.[name] ?? 0)}</dd>
              </div>
            ))}
          </dl>
        )}
      </Panel>
    </Section>
  );
}
