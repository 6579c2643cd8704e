import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { History, RotateCcw } from 'lucide-react';
import { useSearchParams } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { DetailBody } from '../../ui/detail.tsx';
import { DiffView } from '../../ui/editor/lazy.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { writeAgent } from './agent-document.ts';
import styles from './agents.module.css';

const PAGE = 30;

/** The revisions of an agent; one is compared with the current one, and can be made current again. */
export function Revisions({ agent }: { readonly agent: wire.Agent }) {
  const client = useClient();
  const [search, setSearch] = useSearchParams();
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['revisions', agent.name],
    queryFn: ({ pageParam, signal }) =>
      client.agents.revisions(
        agent.name,
        { limit: PAGE, ...(pageParam !== undefined && { before: pageParam }) },
        { signal },
      ),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const revisions = data.pages.flatMap((page) => page.revisions);
  const chosen = Number(search.get('revision') ?? revisions[1]?.revision ?? 0);
  return (
    <div className={styles.revisions}>
      <ol className={styles.revisionList} aria-label="Revisions">
        {revisions.map(({ revision, createdAt, removed }) => (
          <li key={revision}>
            <button
              type="button"
              aria-current={revision === chosen}
              onClick={() => setSearch({ tab: 'revisions', revision: String(revision) }, { replace: true })}
            >
              <span>Revision {revision}</span>
              {revision === agent.revision && <Badge tone="green">current</Badge>}
              {removed && <Badge tone="red">removed</Badge>}
              <span className={styles.revisionTime}>
                <RelativeTime time={createdAt} />
              </span>
            </button>
          </li>
        ))}
        {hasNextPage && (
          <li>
            <Button variant="ghost" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Earlier ones
            </Button>
          </li>
        )}
      </ol>
      <DetailBody>
        {chosen === 0 || revisions.length < 2 ? (
          <Empty icon={<History />} title="There is one revision">
            Each change of the configuration makes another one. Runs keep the revision that they started with.
          </Empty>
        ) : chosen === agent.revision ? (
          <Empty icon={<History />} title={`Revision ${chosen} is the current one`}>
            Choose another one to see what has changed since.
          </Empty>
        ) : (
          <Comparison agent={agent} revision={chosen} />
        )}
      </DetailBody>
    </div>
  );
}

function Comparison({ agent, revision }: { readonly agent: wire.Agent; readonly revision: number }) {
  const client = useClient();
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: ['revision', agent.name, revision],
    queryFn: ({ signal }) => client.agents.revision(agent.name, revision, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const restoring = useMutation({
    mutationFn: (config: wire.Agent['config']) => client.agents.put(agent.name, config),
    onSuccess: async (saved) => {
      queries.setQueryData(['agent', agent.name], saved);
      toast(`Revision ${revision} is current again, as revision ${saved.revision}`);
      await queries.invalidateQueries({ queryKey: ['agents'] });
      await queries.invalidateQueries({ queryKey: ['revisions', agent.name] });
    },
    onError: toastError,
  });
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const before = writeAgent(data.config, 'json');
  const after = writeAgent(agent.config, 'json');
  return (
    <Section
      title={`From revision ${revision} to the current one`}
      actions={
        <Button
          size="small"
          icon={<RotateCcw />}
          busy={restoring.isPending}
          onClick={() => restoring.mutate(data.config)}
        >
          Restore revision {revision}
        </Button>
      }
    >
      {before === after ? (
        <p>Both say the same.</p>
      ) : (
        <DiffView
          label={`Changes since revision ${revision}`}
          before={before}
          after={after}
          language="json"
        />
      )}
    </Section>
  );
}
