import { formatExact, formatRelative } from './format.ts';
import { useNow } from './now.ts';

/** A moment relative to now, with the exact time as its tooltip. */
export function RelativeTime({ time }: { readonly time: string }) {
  const now = Math.max(useNow(), Date.now() - 1000);
  return (
    <time dateTime={time} title={formatExact(time)}>
      {formatRelative(time, now)}
    </time>
  );
}
