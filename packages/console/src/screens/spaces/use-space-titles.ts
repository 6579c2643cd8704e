import { useQuery } from '@tanstack/react-query';
import type { RunRow } from '@toolgate/client';
import { useClient } from '../../data/gateway.tsx';

/** The gateway tells no more runs at once; spaces whose runs are all older are called by their id. */
const RUNS_MAX = 200;

/** How the conversations of spaces began: what a space without a title is called by. */
export function useSpaceTitles(): ReadonlyMap<string, string> {
  const client = useClient();
  const { data } = useQuery({
    queryKey: ['space-titles'],
    queryFn: async ({ signal }) =>
      firstWords((await client.runs.list({ top: true, limit: RUNS_MAX }, { signal })).runs),
  });
  return data ?? NONE;
}

const NONE: ReadonlyMap<string, string> = new Map();

/** The title of each space's first run, from runs that are newest first. */
export function firstWords(runs: readonly RunRow[]): ReadonlyMap<string, string> {
  const titles = new Map<string, string>();
  for (const { spaceId, title, tool } of runs) {
    const words = title || (tool ? `Call of ${tool}` : undefined);
    if (words) titles.set(spaceId, words);
  }
  return titles;
}
