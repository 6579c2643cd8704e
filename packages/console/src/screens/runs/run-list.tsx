import { useVirtualizer } from '@tanstack/react-virtual';
import type { RunRow } from '@toolgate/client';
import { useEffect, useRef } from 'react';
import { Link } from 'wouter';
import { classNames } from '../../ui/class-names.ts';
import { formatCount, shortId } from '../../ui/format.ts';
import { StatusBadge } from '../../ui/status.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './runs.module.css';

const ROW_PX = 44;
const ROW_PX_COMPACT = 58;
/** Rows before the end at which the next page is asked for. */
const AHEAD = 20;
const NARROW = '(max-width: 960px)';
let scrollTop = 0;

export interface RunListProps {
  readonly runs: readonly RunRow[];
  readonly chosen: string | undefined;
  readonly compact: boolean;
  /** What is added to addresses: the filter. */
  readonly search: string;
  readonly hasMore: boolean;
  readonly loadMore: () => void;
}

/** The rows that are on the screen, however many there are. The place is kept when the list comes back. */
export function RunList({ runs, chosen, compact, search, hasMore, loadMore }: RunListProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const isTall = compact || globalThis.matchMedia(NARROW).matches;
  const rows = useVirtualizer({
    count: runs.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => (isTall ? ROW_PX_COMPACT : ROW_PX),
    getItemKey: (index) => runs[index]?.id ?? index,
    overscan: 12,
    initialOffset: scrollTop,
    scrollMargin: 0,
  });
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= runs.length - AHEAD) loadMore();
  }, [hasMore, last, runs.length, loadMore]);
  return (
    <section
      ref={scroll}
      className={classNames(styles.scroll, compact && styles.compact)}
      aria-label="Runs"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
      tabIndex={0}
      onScroll={(event) => {
        scrollTop = event.currentTarget.scrollTop;
      }}
    >
      {!compact && (
        <div className={styles.headRow} aria-hidden="true">
          <span className={styles.status}>Status</span>
          <span className={styles.title}>First message</span>
          <span className={styles.agent}>Agent</span>
          <span className={styles.user}>User</span>
          <span className={styles.tokens}>Tokens</span>
          <span className={styles.when}>Created</span>
        </div>
      )}
      <div className={styles.rows} style={{ height: rows.getTotalSize() }}>
        {shown.map(({ index, start, size, key }) => {
          const run = runs[index];
          return (
            run && (
              <Row
                key={key}
                run={run}
                top={start}
                height={size}
                isChosen={run.id === chosen}
                href={`/runs/${run.id}${search}`}
              />
            )
          );
        })}
      </div>
      {hasMore && <p className={styles.more}>Loading more…</p>}
    </section>
  );
}

interface RowProps {
  readonly run: RunRow;
  readonly top: number;
  readonly height: number;
  readonly isChosen: boolean;
  readonly href: string;
}

function Row({ run, top, height, isChosen, href }: RowProps) {
  return (
    <Link
      href={href}
      className={styles.row}
      style={{ height, transform: `translateY(${top}px)` }}
      aria-current={isChosen ? 'true' : undefined}
    >
      <span className={styles.status}>
        <StatusBadge status={run.status} />
      </span>
      <span className={styles.title}>{titleOf(run)}</span>
      <span className={styles.agent}>{run.agent}</span>
      <span className={styles.user}>{run.userId ? shortId(run.userId) : '–'}</span>
      <span className={styles.tokens}>{run.tokens ? formatCount(run.tokens) : '–'}</span>
      <span className={styles.when}>
        <RelativeTime time={run.createdAt} />
      </span>
    </Link>
  );
}

/** The words by which people know a run. */
export function titleOf(run: Pick<RunRow, 'title' | 'tool' | 'id'>): string {
  if (run.tool) return `Call of ${run.tool}`;
  return run.title ? showControls(run.title) : shortId(run.id);
}
