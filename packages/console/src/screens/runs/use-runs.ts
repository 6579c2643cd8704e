import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import type { RunQuery, RunRow, RunRows } from '@toolgate/client';
import { useEffect, useMemo } from 'react';
import { useClient } from '../../data/gateway.tsx';
import { onRunChange } from '../../data/live-runs.tsx';
import { isEnded } from '../../ui/status.tsx';

const PAGE = 100;
/** Also where no live stream brings changes, runs that are open are looked at again. */
const REFRESH_MS = 4_000;

/** What the list shows; kept in the address. */
export interface RunFilter {
  readonly text: string;
  readonly agent: string;
  readonly user: string;
  /** A status, `open` for all that have not ended, or nothing. */
  readonly status: string;
  /** How far back, in hours; 0 for everything. */
  readonly hours: number;
  /** Whether runs that calls have started are listed too. */
  readonly children: boolean;
}

export const OPEN_STATUSES = 'queued,running,waiting_tool,waiting_approval,waiting_time';

/** Runs that fit the filter, newest first. Rows change in place; further pages come with `fetchNextPage`. */
export function useRuns(filter: RunFilter) {
  const client = useClient();
  const queries = useQueryClient();
  const key = useMemo(() => ['runs', filter] as const, [filter]);
  const found = useInfiniteQuery({
    queryKey: key,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      client.runs.list(
        { ...queryOf(filter), limit: PAGE, ...(pageParam && { before: pageParam }) },
        { signal },
      ),
    getNextPageParam: (page: RunRows) => page.nextCursor ?? undefined,
    refetchInterval: ({ state }) =>
      state.data?.pages.length === 1 && state.data.pages[0]?.runs.some(({ status }) => !isEnded(status))
        ? REFRESH_MS
        : false,
  });
  useEffect(
    () =>
      onRunChange((run) => {
        queries.setQueryData<InfiniteData<RunRows, string | undefined>>(
          key,
          (data) => data && merged(data, run, filter),
        );
      }),
    [queries, key, filter],
  );
  const runs = useMemo(() => found.data?.pages.flatMap((page) => page.runs) ?? [], [found.data]);
  return { ...found, runs };
}

function queryOf({ text, agent, user, status, hours, children }: RunFilter): RunQuery {
  return {
    ...(text && { text }),
    ...(agent && { agent }),
    ...(user && { user }),
    ...(status && { status: status === 'open' ? OPEN_STATUSES : status }),
    // To the minute, so that the query stays the same while the list is looked at.
    ...(hours > 0 && {
      since: new Date(Math.floor(Date.now() / 60_000) * 60_000 - hours * 3_600_000).toISOString(),
    }),
    ...(!children && { top: true }),
  };
}

/** The pages with a run's new row: in its place, or on top if it is new and fits what can be told here. */
export function merged<Data extends { pages: RunRows[] }>(data: Data, run: RunRow, filter: RunFilter): Data {
  let isKnown = false;
  const pages = data.pages.map((page) => {
    const at = page.runs.findIndex(({ id }) => id === run.id);
    if (at < 0) return page;
    isKnown = true;
    return { ...page, runs: page.runs.with(at, { ...page.runs[at], ...run }) };
  });
  if (isKnown) return { ...data, pages };
  const [first, ...rest] = pages;
  const fits =
    (!filter.agent || run.agent === filter.agent) &&
    (!filter.status || (filter.status === 'open' ? !isEnded(run.status) : run.status === filter.status)) &&
    (filter.children || !run.parent) &&
    (!filter.user || run.userId === filter.user) &&
    (!filter.text || (run.title ?? '').toLowerCase().includes(filter.text.toLowerCase()));
  return first && fits ? { ...data, pages: [{ ...first, runs: [run, ...first.runs] }, ...rest] } : data;
}
