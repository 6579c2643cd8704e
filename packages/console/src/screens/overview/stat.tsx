import { Link } from 'wouter';
import styles from './overview.module.css';

export interface StatProps {
  readonly title: string;
  readonly value: string;
  readonly note: string;
  readonly href?: string;
  /** Colours the note, which says in words what the colour means. */
  readonly tone?: 'neutral' | 'amber' | 'red';
}

/** One figure with what it means; a link where there is more to see. */
export function Stat({ title, value, note, href, tone = 'neutral' }: StatProps) {
  const content = (
    <>
      <span className={styles.statTitle}>{title}</span>
      <span className={styles.statValue}>{value}</span>
      <span className={styles.statNote} data-tone={tone}>
        {note}
      </span>
    </>
  );
  return href ? (
    <Link href={href} className={styles.stat}>
      {content}
    </Link>
  ) : (
    <div className={styles.stat}>{content}</div>
  );
}
