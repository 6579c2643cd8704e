import { useMutation, useQuery } from '@tanstack/react-query';
import { callsOf, isSettled } from '@toolgate/react';
import { Eye, MessageSquareText, RotateCw } from 'lucide-react';
import { useMemo } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { MessageView } from '../../conversation/message-view.tsx';
import { ToolCard } from '../../conversation/tool-card.tsx';
import { useClient } from '../../data/gateway.tsx';
import { Button, LinkButton } from '../../ui/button.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { EventsView } from './events-view.tsx';
import styles from './run-detail.module.css';
import type { RunStory } from './run-events.ts';
import { RunHead } from './run-head.tsx';
import { startAgain } from './start-again.ts';
import { TimelineView } from './timeline-view.tsx';
import { usePublicStory, useStory } from './use-story.ts';

export interface RunDetailProps {
  readonly runId: string;
  /** The list's part of the address, to go back to. */
  readonly listSearch: string;
}

type Tab = 'timeline' | 'conversation' | 'events';

/** One run: its head, what it waits for, and its timeline, conversation or events. */
export function RunDetail({ runId, listSearch }: RunDetailProps) {
  const client = useClient();
  const run = useQuery({
    queryKey: ['run', runId],
    queryFn: ({ signal }) => client.runs.get(runId, { signal }),
  });
  const [search, setSearch] = useSearchParams();
  const own = useStory(runId);
  const isPublic = search.get('view') === 'public';
  const seen = usePublicStory(runId, own.events.at(-1)?.seq ?? 0, isPublic);
  const story = isPublic ? seen : own;
  const tab = (search.get('tab') as Tab | null) ?? 'timeline';
  const set = (changes: Record<string, string | undefined>): void =>
    setSearch(
      (before) => {
        for (const [name, value] of Object.entries(changes))
          if (value === undefined) before.delete(name);
          else before.set(name, value);
        return before;
      },
      { replace: true },
    );
  if (own.state === 'failed')
    return (
      <ErrorState
        error={own.error}
        retry={own.retry}
        back={<LinkButton href={`/runs${listSearch}`}>All runs</LinkButton>}
      />
    );
  if (own.events.length === 0) return <Loading />;
  const failure = own.events.findLast((event) => event.type === 'run-finish');
  return (
    <div className={styles.detail}>
      <RunHead
        runId={runId}
        story={own}
        run={run.data}
        isPublic={isPublic}
        onPublic={(on) => set({ view: on ? 'public' : undefined })}
        listSearch={listSearch}
      />
      {failure?.error && <p className={styles.error}>{showControls(failure.error)}</p>}
      {isPublic && (
        <p className={styles.notice}>
          <Eye aria-hidden="true" />
          This is what the run’s user sees with a public key: inputs and outputs of tools on the gateway’s
          side are left out.
        </p>
      )}
      {!isPublic && <Asks story={own} />}
      <Tabs
        label="Views of the run"
        chosen={tab}
        onChoose={(id) => set({ tab: id === 'timeline' ? undefined : id })}
        tabs={[
          { id: 'timeline', label: 'Timeline' },
          { id: 'conversation', label: 'Conversation' },
          { id: 'events', label: 'Events', count: story.events.length },
        ]}
      />
      <div className={styles.body}>
        {isPublic && seen.state === 'failed' ? (
          <ErrorState error={seen.error} />
        ) : tab === 'events' ? (
          <EventsView
            events={story.events}
            chosen={search.get('event') ?? undefined}
            onChoose={(seq) => set({ event: seq })}
          />
        ) : tab === 'conversation' ? (
          <Conversation story={story} events={own.events} />
        ) : (
          <TimelineView
            story={story}
            chosen={search.get('call') ?? undefined}
            onChoose={(call) => set({ call })}
          />
        )}
      </div>
    </div>
  );
}

/** The calls that wait for a person or a client, with the forms to answer them. */
function Asks({ story }: { readonly story: RunStory }) {
  const open = useMemo(
    () =>
      callsOf(story.conversation).filter(
        (call) =>
          !isSettled(call.state) &&
          (call.state === 'approval-requested' ||
            call.questions?.some(({ state }) => state === 'asked') ||
            (call.placement === 'client' && call.deadline !== undefined) ||
            call.pause?.signal),
      ),
    [story.conversation],
  );
  if (open.length === 0) return null;
  return (
    <section className={styles.asks} aria-label="What the run waits for">
      {open.map((call) => (
        <ToolCard key={call.id} call={call} />
      ))}
    </section>
  );
}

function Conversation({ story, events }: { readonly story: RunStory; readonly events: RunStory['events'] }) {
  const client = useClient();
  const [, navigate] = useLocation();
  const again = useMutation({
    mutationFn: (messageId: string) => startAgain(client, events, messageId),
    onSuccess: (next) => next && navigate(`/runs/${next}`),
    onError: toastError,
  });
  const { messages } = story.conversation;
  if (messages.length === 0)
    return (
      <Empty icon={<MessageSquareText />} title="Nothing was said">
        This run is one call of a tool, which no model wrote.
      </Empty>
    );
  return (
    <div className={styles.messages}>
      {messages.map((message) => (
        <div key={message.id}>
          <MessageView message={message} />
          {message.role === 'user' && (
            <p className={styles.again}>
              <Button
                size="small"
                variant="ghost"
                icon={<RotateCw />}
                busy={again.isPending && again.variables === message.id}
                onClick={() => again.mutate(message.id)}
              >
                Run again from here
              </Button>
            </p>
          )}
        </div>
      ))}
    </div>
  );
}
