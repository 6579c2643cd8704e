import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { EMPTY_CONVERSATION, fold } from '@toolgate/react';
import { useMemo, useSyncExternalStore } from 'react';
import { useClient } from '../../data/gateway.tsx';
import { RunEvents, type RunStory } from './run-events.ts';

const PAGE = 500;
const PAGES_MAX = 20;

/** A run's events, live, and how to follow it again after that has failed. */
export function useStory(runId: string): RunStory & { readonly retry: () => void } {
  const client = useClient();
  const store = useMemo(() => new RunEvents(client, runId), [client, runId]);
  const story = useSyncExternalStore(store.subscribe, store.snapshot, store.snapshot);
  return useMemo(() => ({ ...story, retry: store.retry }), [story, store]);
}

/** A run's events as a user of the project sees them; read again when the run has new events. */
export function usePublicStory(runId: string, seq: number, isOn: boolean): RunStory {
  const client = useClient();
  const query = useQuery({
    queryKey: ['run', runId, 'public', seq],
    enabled: isOn,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const events: wire.Event[] = [];
      for (let after: number | undefined, page = 0; page < PAGES_MAX; page += 1) {
        const found = await client.runs.events(
          runId,
          { view: 'public', limit: PAGE, ...(after !== undefined && { after }) },
          { signal },
        );
        events.push(...found.events);
        if (found.events.length < PAGE || !found.nextCursor) break;
        after = found.nextCursor;
      }
      return events;
    },
  });
  return useMemo(() => {
    const events = query.data ?? [];
    return {
      events,
      conversation: events.reduce(fold, EMPTY_CONVERSATION),
      state: query.isError ? 'failed' : query.isPending ? 'loading' : 'ended',
      ...(query.error !== null && { error: query.error }),
    };
  }, [query.data, query.isError, query.isPending, query.error]);
}
