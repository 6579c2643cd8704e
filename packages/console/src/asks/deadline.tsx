import { formatExact, formatRelative } from '../ui/format.ts';
import { useNow } from '../ui/now.ts';
import styles from './asks.module.css';

/** When something is too late, and what happens then. */
export function Deadline({ time, words }: { readonly time: string; readonly words: string }) {
  const now = useNow();
  const left = Date.parse(time) - now;
  return (
    <time className={styles.until} dateTime={time} title={formatExact(time)}>
      {left > 0 ? `${words} ${formatRelative(time, now)}` : `${words} any moment`}
    </time>
  );
}
