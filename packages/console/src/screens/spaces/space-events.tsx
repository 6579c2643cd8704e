import { useInfiniteQuery } from '@tanstack/react-query';
import { Activity } from 'lucide-react';
import { useClient } from '../../data/gateway.tsx';
import { Button, LinkButton } from '../../ui/button.tsx';
import { formatClock, formatExact, shortId } from '../../ui/format.ts';
import { JsonView } from '../../ui/json-view.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import styles from './spaces.module.css';

const PAGE = 100;

/** What happened in a space, oldest first. */
export function SpaceEvents({ spaceId }: { readonly spaceId: string }) {
  const client = useClient();
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['space-events', spaceId],
    queryFn: ({ pageParam, signal }) =>
      client.spaces.events(
        spaceId,
        { limit: PAGE, ...(pageParam !== undefined && { after: pageParam }) },
        { signal },
      ),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const events = data.pages.flatMap((page) => page.events);
  if (events.length === 0)
    return (
      <Empty icon={<Activity />} title="Nothing has happened yet">
        Messages, runs and calls of this space appear here.
      </Empty>
    );
  return (
    <>
      <ol className={styles.events}>
        {events.map((event, index) => {
          const { seq, runId, time } = event as { seq?: number; runId?: string; time?: string };
          return (
            <li key={seq ?? index}>
              <details>
                <summary>
                  <span className={styles.at} title={time && formatExact(time)}>
                    {time && formatClock(time)}
                  </span>
                  <code>{event.type}</code>
                  {runId && <span className={styles.run}>{shortId(runId)}</span>}
                </summary>
                {runId && (
                  <LinkButton size="small" href={`/runs/${runId}`}>
                    Show the run
                  </LinkButton>
                )}
                <JsonView value={event} open={1} label={`Event ${seq ?? index}`} />
              </details>
            </li>
          );
        })}
      </ol>
      {hasNextPage && (
        <Button variant="ghost" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Later ones
        </Button>
      )}
    </>
  );
}
