import { useQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Hand, Inbox as InboxIcon, MessageCircleQuestionMark, MessageSquare } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link, useSearchParams } from 'wouter';
import { ApprovalForm } from '../../asks/approval-form.tsx';
import { QuestionForm } from '../../asks/question-form.tsx';
import { useClient } from '../../data/gateway.tsx';
import { Person } from '../../data/person.tsx';
import { useInbox } from '../../data/queries.ts';
import { Badge } from '../../ui/badge.tsx';
import { LinkButton } from '../../ui/button.tsx';
import { Select } from '../../ui/field.tsx';
import { shortId } from '../../ui/format.ts';
import { Page } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './inbox.module.css';

type Ask =
  | { readonly kind: 'approval'; readonly ask: wire.OpenApproval }
  | { readonly kind: 'question'; readonly ask: wire.OpenQuestion };

/** What waits for a person: open approvals and questions of tools, the one that expires first on top. */
export default function InboxScreen() {
  const inbox = useInbox();
  const [search, setSearch] = useSearchParams();
  const agent = search.get('agent') ?? '';
  const all = asksOf(inbox.data);
  const agents = [...new Set(all.map(({ ask }) => ask.agent))].sort();
  const shown = all.filter(({ ask }) => agent === '' || ask.agent === agent);
  return (
    <Page
      title="Inbox"
      description="Calls that go on when a person has decided or answered."
      actions={
        agents.length > 1 && (
          <Select
            aria-label="Agent"
            value={agent}
            onChange={(event) =>
              setSearch(event.target.value ? { agent: event.target.value } : {}, { replace: true })
            }
          >
            <option value="">Any agent</option>
            {agents.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </Select>
        )
      }
    >
      {inbox.isPending ? (
        <Loading />
      ) : !inbox.data ? (
        <ErrorState error={inbox.error} retry={() => void inbox.refetch()} />
      ) : shown.length === 0 ? (
        <Empty
          icon={<InboxIcon />}
          title="Nothing waits for you"
          actions={
            <LinkButton href="/chat" icon={<MessageSquare />}>
              Talk to an agent
            </LinkButton>
          }
        >
          When a tool needs an approval, or asks a question in the middle of a call, it appears here and on
          the run.
        </Empty>
      ) : (
        <div className={styles.list}>
          {shown.map((item) =>
            item.kind === 'approval' ? (
              <Item key={item.ask.approvalId} item={item}>
                <ApprovalForm approval={item.ask} />
              </Item>
            ) : (
              <Item key={item.ask.questionId} item={item}>
                <QuestionForm question={item.ask} />
              </Item>
            ),
          )}
          {inbox.data.more && (
            <p className={styles.more}>More are waiting. They appear here as these are answered.</p>
          )}
        </div>
      )}
    </Page>
  );
}

function Item({ item: { kind, ask }, children }: { readonly item: Ask; readonly children: ReactNode }) {
  const client = useClient();
  const top = ask.rootRunId ?? ask.runId;
  const run = useQuery({
    // Of its own: whose run it is stays the same while the run goes on.
    queryKey: ['asked-run', top],
    queryFn: ({ signal }) => client.runs.get(top, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <article className={styles.item}>
      <div className={styles.head}>
        <h2>
          <code>{ask.toolName}</code> {kind === 'approval' ? 'wants to run' : 'asks'}
        </h2>
        <Badge tone="amber" icon={kind === 'approval' ? <Hand /> : <MessageCircleQuestionMark />}>
          {kind === 'approval' ? 'Approval' : 'Question'}
        </Badge>
      </div>
      <div className={styles.facts}>
        <span>
          Agent <b>{ask.agent}</b>
        </span>
        {run.data?.userId && (
          <span>
            for{' '}
            <b>
              <Person id={run.data.userId} />
            </b>
          </span>
        )}
        <span>
          asked <RelativeTime time={ask.requestedAt} />
        </span>
        <Link href={`/runs/${ask.runId}`}>Run {shortId(ask.runId)}</Link>
        <Link href={`/chat/${ask.spaceId}`}>Conversation</Link>
      </div>
      {run.data?.title && <p className={styles.words}>{showControls(run.data.title)}</p>}
      {children}
    </article>
  );
}

function asksOf(inbox: ReturnType<typeof useInbox>['data']): Ask[] {
  const approvals = (inbox?.approvals ?? []).map((ask) => ({ kind: 'approval', ask }) as const);
  const questions = (inbox?.questions ?? []).map((ask) => ({ kind: 'question', ask }) as const);
  return [...approvals, ...questions].sort((a, b) => a.ask.expiresAt.localeCompare(b.ask.expiresAt));
}
