import { ToolgateChatProvider } from '@toolgate/react';
import { Activity, MessageSquare } from 'lucide-react';
import { useMemo } from 'react';
import { useRoute, useSearchParams } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Button, LinkButton } from '../../ui/button.tsx';
import { Page, Split } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { RunDetail } from './run-detail.tsx';
import { RunFilters } from './run-filters.tsx';
import { RunList } from './run-list.tsx';
import styles from './runs.module.css';
import { type RunFilter, useRuns } from './use-runs.ts';

/** Runs: `/runs` is the list, `/runs/{run}` one of them beside it. */
export default function RunsScreen() {
  const client = useClient();
  const [, params] = useRoute('/runs/:run');
  const [filter, change, search] = useFilter();
  const runId = params?.run;
  return (
    <ToolgateChatProvider client={client}>
      {runId ? (
        <Page title="Runs" layout="filled">
          <Split
            open
            list={<Runs filter={filter} change={change} search={search} chosen={runId} />}
            detail={<RunDetail key={runId} runId={runId} listSearch={search} />}
          />
        </Page>
      ) : (
        <Page title="Runs" layout="filled">
          <div className={styles.whole}>
            <Runs filter={filter} change={change} search={search} chosen={undefined} />
          </div>
        </Page>
      )}
    </ToolgateChatProvider>
  );
}

interface RunsProps {
  readonly filter: RunFilter;
  readonly change: (change: Partial<RunFilter>) => void;
  readonly search: string;
  readonly chosen: string | undefined;
}

function Runs({ filter, change, search, chosen }: RunsProps) {
  const { data, runs, isPending, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } =
    useRuns(filter);
  const isFiltered = search !== '';
  return (
    <>
      <RunFilters filter={filter} onChange={change} compact={chosen !== undefined} />
      {isPending ? (
        <Loading />
      ) : !data ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : runs.length === 0 && hasNextPage ? (
        <Empty
          icon={<Activity />}
          title="None of the newest runs fits the filter"
          actions={
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Look at older runs
            </Button>
          }
        />
      ) : runs.length === 0 ? (
        <Empty
          icon={<Activity />}
          title={isFiltered ? 'No run fits the filter' : 'No runs yet'}
          actions={
            isFiltered ? (
              <Button onClick={() => change(EVERYTHING)}>Show all runs</Button>
            ) : (
              <LinkButton href="/chat" variant="primary" icon={<MessageSquare />}>
                Talk to an agent
              </LinkButton>
            )
          }
        >
          {isFiltered
            ? undefined
            : 'Every activation of an agent is a run: its steps, calls and events appear here.'}
        </Empty>
      ) : (
        <RunList
          runs={runs}
          chosen={chosen}
          compact={chosen !== undefined}
          search={search}
          hasMore={hasNextPage}
          loadMore={() => {
            if (!isFetchingNextPage) void fetchNextPage();
          }}
        />
      )}
    </>
  );
}

const EVERYTHING: RunFilter = { text: '', agent: '', user: '', status: '', hours: 0, children: false };

/** The filter in the address, a function that changes it, and the address's part that holds it. */
function useFilter(): [RunFilter, (change: Partial<RunFilter>) => void, string] {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  return useMemo(() => {
    const given = new URLSearchParams(text);
    const filter: RunFilter = {
      text: given.get('text') ?? '',
      agent: given.get('agent') ?? '',
      user: given.get('user') ?? '',
      status: given.get('status') ?? '',
      hours: Number(given.get('hours') ?? 0),
      children: given.get('children') === 'true',
    };
    const change = (part: Partial<RunFilter>): void =>
      setParams(filterParams({ ...filter, ...part }), { replace: true });
    const own = filterParams(filter).toString();
    return [filter, change, own === '' ? '' : `?${own}`];
  }, [text, setParams]);
}

function filterParams(filter: RunFilter): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) {
    if (value !== '' && value !== 0 && value !== false) params.set(name, String(value));
  }
  return params;
}
