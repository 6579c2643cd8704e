import { useQueryClient } from '@tanstack/react-query';
import type { RunRow } from '@toolgate/client';
import { useEffect } from 'react';
import { useClient, useReach } from './gateway.tsx';

type Listener = (run: RunRow) => void;

/** How long changes are gathered before what depends on them is read again. */
const REFRESH_MS = 400;

const listeners = new Set<Listener>();

/** Calls `listener` for each run that is created or changes its status. */
export function onRunChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Follows the project's runs for the whole page: lists change in place, and the inbox is read again when a run
 * begins to wait or goes on. After a cut everything that is shown is read again.
 */
export function LiveRuns() {
  const client = useClient();
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watch = client.runs.watch({
      onRun: (run) => {
        for (const listener of listeners) listener(run);
        // Together for many runs: a busy gateway is not asked once for each of them.
        timer ??= setTimeout(() => {
          timer = undefined;
          void queries.invalidateQueries({ queryKey: ['inbox'] });
          void queries.invalidateQueries({ queryKey: ['run'] });
        }, REFRESH_MS);
      },
      onReset: () => void queries.invalidateQueries(),
    });
    return () => {
      clearTimeout(timer);
      watch.close();
    };
  }, [client, queries]);
  const reach = useReach();
  useEffect(() => {
    if (reach === 'live')
      void queries.invalidateQueries({ predicate: (query) => query.state.status === 'error' });
  }, [reach, queries]);
  return null;
}
