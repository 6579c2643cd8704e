import { useQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { callsOf, type ToolCall } from '@toolgate/react';
import { ArrowLeft, CircleStop, Eye, MessageSquare, RotateCw, Terminal } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Person } from '../../data/person.tsx';
import { Button, LinkButton } from '../../ui/button.tsx';
import { copyText } from '../../ui/copy.ts';
import { formatCount, formatDuration, formatExact, formatTimeOfDay } from '../../ui/format.ts';
import { Id } from '../../ui/id.tsx';
import { Menu } from '../../ui/menu.tsx';
import { useNow } from '../../ui/now.ts';
import { isEnded, StatusBadge } from '../../ui/status.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { costOf, formatCost } from './cost.ts';
import { curlOf } from './curl.ts';
import styles from './run-detail.module.css';
import type { RunStory } from './run-events.ts';
import { startAgain } from './start-again.ts';
import { waitsUntil } from './waits-until.ts';

export interface RunHeadProps {
  readonly runId: string;
  readonly story: RunStory;
  readonly run: wire.Run | undefined;
  readonly isPublic: boolean;
  readonly onPublic: (on: boolean) => void;
  readonly listSearch: string;
}

/** What a run is, how it stands, and what can be done with it. */
export function RunHead({ runId, story, run, isPublic, onPublic, listSearch }: RunHeadProps) {
  const start = story.events.find((event) => event.type === 'run-start');
  const status = statusOf(story, run);
  return (
    <div className={styles.head}>
      <div className={styles.title}>
        <span className={styles.back}>
          <LinkButton href={`/runs${listSearch}`} size="small" variant="ghost" icon={<ArrowLeft />}>
            Runs
          </LinkButton>
        </span>
        <StatusBadge status={status} />
        {!isEnded(status) && <WaitsUntil calls={callsOf(story.conversation)} />}
        <h2>{titleIn(story.events) ?? runId}</h2>
        <Id id={runId} />
      </div>
      <Facts story={story} start={start} status={status} run={run} />
      <Actions
        runId={runId}
        story={story}
        spaceId={start?.spaceId}
        status={status}
        isPublic={isPublic}
        onPublic={onPublic}
      />
    </div>
  );
}

/** Until when what the run waits for may come. */
function WaitsUntil({ calls }: { readonly calls: readonly ToolCall[] }) {
  const now = useNow();
  const until = waitsUntil(calls);
  if (until === undefined) return null;
  return (
    <time className={styles.until} dateTime={until} title={formatExact(until)}>
      until {formatTimeOfDay(until, now)}
    </time>
  );
}

interface FactsProps {
  readonly story: RunStory;
  readonly start: wire.RunStartEvent | undefined;
  readonly status: wire.Status;
  readonly run: wire.Run | undefined;
}

function Facts({ story, start, status, run }: FactsProps) {
  const client = useClient();
  const prices = useQuery({
    queryKey: ['prices'],
    queryFn: ({ signal }) => client.gateway.prices({ signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const now = useNow();
  const first = story.events[0];
  const last = story.events.at(-1);
  const model = start?.model as { provider?: string; name?: string } | undefined;
  const usage = usageOf(story.events);
  const cost = prices.data && model && costOf(prices.data, model, usage);
  const end = isEnded(status) && last ? Date.parse(last.time) : now;
  return (
    <dl className={styles.facts}>
      {start && (
        <Fact name="Agent">
          <Link href={`/agents/${start.agent}`}>
            {start.agent} · revision {start.revision}
          </Link>
        </Fact>
      )}
      {model && (
        <Fact name="Model">
          {model.provider} {model.name !== model.provider && model.name}
        </Fact>
      )}
      {run?.userId && (
        <Fact name="For">
          <Person id={run.userId} />
        </Fact>
      )}
      <Fact name="Tokens">
        {formatCount(usage.inputTokens)} in, {formatCount(usage.outputTokens)} out
      </Fact>
      {cost !== undefined && <Fact name="Cost">{formatCost(cost, prices.data?.currency ?? 'USD')}</Fact>}
      {first && <Fact name="Duration">{formatDuration(Math.max(0, end - Date.parse(first.time)))}</Fact>}
      {first && (
        <Fact name="Started">
          <RelativeTime time={first.time} />
        </Fact>
      )}
      {run?.totalUsage && (run.totalUsage.childRuns ?? 0) > 0 && (
        <Fact name="With child runs">
          {formatCount(run.totalUsage.tokens)} tokens in {run.totalUsage.childRuns} child{' '}
          {run.totalUsage.childRuns === 1 ? 'run' : 'runs'}
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface ActionsProps {
  readonly runId: string;
  readonly story: RunStory;
  readonly spaceId: string | undefined;
  readonly status: wire.Status;
  readonly isPublic: boolean;
  readonly onPublic: (on: boolean) => void;
}

function Actions({ runId, story, spaceId, status, isPublic, onPublic }: ActionsProps) {
  const client = useClient();
  const [, navigate] = useLocation();
  const [busy, setBusy] = useState<'cancel' | 'again'>();
  const act = async (what: 'cancel' | 'again', work: () => Promise<void>): Promise<void> => {
    setBusy(what);
    try {
      await work();
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(undefined);
    }
  };
  const again = async (): Promise<void> => {
    const request = story.events.find((event) => event.type === 'call-request');
    if (request) {
      const start = story.events.find((event) => event.type === 'run-start');
      const input = (request.input ?? {}) as Record<string, unknown>;
      const body = { arguments: input, ...(start && { agent: start.agent }) };
      const call = await client.tools.call(request.toolName, body, { waitSeconds: 0 });
      return navigate(`/runs/${call.runId}`);
    }
    const runAgain = await startAgain(client, story.events);
    if (runAgain) navigate(`/runs/${runAgain}`);
  };
  const copy = (what: 'start' | 'read' | 'events'): void => {
    const text = curlOf(what, globalThis.location.origin, runId, story.events);
    void copyText(text).then(() => toast('The command is on the clipboard.'));
  };
  return (
    <div className={styles.actions}>
      {!isEnded(status) && (
        <Button
          variant="danger"
          icon={<CircleStop />}
          busy={busy === 'cancel'}
          onClick={() =>
            void act('cancel', async () => {
              await client.runs.cancel(runId);
            })
          }
        >
          Cancel
        </Button>
      )}
      <Button icon={<RotateCw />} busy={busy === 'again'} onClick={() => void act('again', again)}>
        Run again
      </Button>
      {spaceId && (
        <LinkButton href={`/chat/${spaceId}`} icon={<MessageSquare />}>
          Open chat
        </LinkButton>
      )}
      <span className={styles.grow} />
      <Button
        variant={isPublic ? 'default' : 'ghost'}
        icon={<Eye />}
        aria-pressed={isPublic}
        onClick={() => onPublic(!isPublic)}
      >
        As a user sees it
      </Button>
      <Menu
        label="Copy as curl"
        icon={<Terminal />}
        items={[
          { head: 'Copy as curl' },
          { label: 'Start this run again', onSelect: () => copy('start') },
          { label: 'Read the run', onSelect: () => copy('read') },
          { label: 'Follow its events', onSelect: () => copy('events') },
        ]}
      />
    </div>
  );
}

/** The status that the events tell, which is newer than the row that was read. */
function statusOf(story: RunStory, run: wire.Run | undefined): wire.Status {
  const last = story.events.findLast(
    (event) => event.type === 'run-finish' || event.type === 'run-status' || event.type === 'step-start',
  );
  if (last?.type === 'run-finish' || last?.type === 'run-status') return last.status;
  if (last) return 'running';
  return run?.status ?? 'queued';
}

function titleIn(events: readonly wire.Event[]): string | undefined {
  const request = events.find((event) => event.type === 'call-request');
  if (request) return `Call of ${request.toolName}`;
  const message = events.find((event) => event.type === 'message');
  const text = message?.message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ');
  return text ? showControls(text) : undefined;
}

function usageOf(events: readonly wire.Event[]): wire.Usage {
  const sum = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
  for (const event of events) {
    if (event.type !== 'step-finish') continue;
    sum.inputTokens += event.usage.inputTokens;
    sum.outputTokens += event.usage.outputTokens;
    sum.cachedTokens += event.usage.cachedTokens ?? 0;
  }
  return sum;
}
