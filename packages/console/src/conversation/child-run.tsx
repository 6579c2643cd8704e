import { useRun } from '@toolgate/react';
import { Link } from 'wouter';
import { shortId } from '../ui/format.ts';
import { StatusBadge } from '../ui/status.tsx';
import { MessageView } from './message-view.tsx';
import styles from './tool-card.module.css';

/** A child run, folded into the call that started it. */
export function ChildRun({ runId }: { readonly runId: string }) {
  const { run, messages } = useRun(runId);
  return (
    <div className={styles.child}>
      <div className={styles.childHead}>
        <span className={styles.partTitle}>
          Child run {run && `of ${run.agent} `}
          <Link href={`/runs/${runId}`}>{shortId(runId)}</Link>
        </span>
        {run && <StatusBadge status={run.status} />}
      </div>
      {messages.map((message) => (
        <MessageView key={message.id} message={message} />
      ))}
    </div>
  );
}
