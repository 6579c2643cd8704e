import { isSettled, type ToolCall } from '@toolgate/react';
import { ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { ApprovalForm } from '../asks/approval-form.tsx';
import { QuestionForm } from '../asks/question-form.tsx';
import { ResultForm } from '../asks/result-form.tsx';
import { SignalForm } from '../asks/signal-form.tsx';
import { useInbox } from '../data/queries.ts';
import { CodeBlock } from '../ui/code-block.tsx';
import { Id } from '../ui/id.tsx';
import { JsonView } from '../ui/json-view.tsx';
import { useNow } from '../ui/now.ts';
import { PlacementBadge } from '../ui/placement.tsx';
import { showControls } from '../ui/visible-text.ts';
import { AskUser, asksUser, isOpenForClients } from './ask-user.tsx';
import { CallStateBadge, callWords } from './call-state.tsx';
import { ChildRun } from './child-run.tsx';
import { Progress } from './progress.tsx';
import styles from './tool-card.module.css';

/** One call: its state live, what it was given and gave, and what it asks of people. */
export function ToolCard({ call }: { readonly call: ToolCall }) {
  const asks = asksSomebody(call);
  const [chosen, setChosen] = useState<boolean>();
  const isOpen = chosen ?? asks;
  const now = useNow();
  return (
    <div
      className={styles.card}
      data-tool={call.name}
      data-state={call.state}
      data-tone={asks ? 'ask' : undefined}
    >
      <button
        type="button"
        className={styles.cardHead}
        aria-expanded={isOpen}
        onClick={() => setChosen(!isOpen)}
      >
        <ChevronRight aria-hidden="true" />
        <span className={styles.cardName}>{call.name}</span>
        <span className={styles.cardWords}>{callWords(call, now)}</span>
        <CallStateBadge call={call} />
      </button>
      {!isSettled(call.state) && call.progress !== undefined && <Progress value={call.progress} />}
      {isOpen && (
        <div className={styles.cardBody}>
          <CallDetail call={call} />
        </div>
      )}
    </div>
  );
}

/** Everything that is known of a call, and the forms for what it asks. */
export function CallDetail({ call }: { readonly call: ToolCall }) {
  const inbox = useInbox().data;
  const open = inbox?.approvals.find(({ approvalId }) => approvalId === call.approval?.id);
  const question = call.questions?.find(({ state }) => state === 'asked');
  const isApproval = call.state === 'approval-requested' && call.approval?.state === 'requested';
  return (
    <div className={styles.parts}>
      {isApproval && call.approval && (
        <ApprovalForm
          key={call.approval.id}
          approval={{
            approvalId: call.approval.id,
            toolName: call.name,
            input: call.approval.input ?? call.input,
            editable: open?.editable ?? true,
            agent: open?.agent ?? '',
            expiresAt: call.approval.expiresAt,
            ...(call.approval.remember && { remember: call.approval.remember }),
            ...(call.approval.voice && { voice: call.approval.voice }),
          }}
        />
      )}
      {question && <QuestionForm key={question.id} question={{ ...question, questionId: question.id }} />}
      {asksUser(call) && <AskUser call={call} />}
      {call.pause?.signal && !isSettled(call.state) && <SignalForm callId={call.id} />}
      {call.state === 'input-streaming' && call.inputText !== '' && (
        <Part title="Input, as it is written">
          <CodeBlock text={call.inputText} wrap />
        </Part>
      )}
      {!isApproval && call.input !== undefined && (
        <Part title="Input">
          <JsonView value={call.input} open={2} label="Input" />
        </Part>
      )}
      {call.childRunId && <ChildRun runId={call.childRunId} />}
      {call.state === 'output-available' && (
        <Part title="Output">
          <JsonView value={call.output} open={3} label="Output" />
        </Part>
      )}
      {call.error && (
        <div className={styles.error}>
          <b>{call.error.code}</b> {showControls(call.error.message)}
        </div>
      )}
      {call.log && (
        <Part title="Log">
          <CodeBlock text={call.log} wrap />
        </Part>
      )}
      <div>
        <PlacementBadge placement={call.placement} /> <Id id={call.id} />
      </div>
      {isOpenForClients(call) && !asksUser(call) && (
        <details>
          <summary className={styles.partTitle}>Answer this call by hand</summary>
          <ResultForm runId={call.runId} toolCallId={call.id} />
        </details>
      )}
    </div>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: React.ReactNode }) {
  return (
    <div className={styles.part}>
      <span className={styles.partTitle}>{title}</span>
      {children}
    </div>
  );
}

/** Whether the call waits for a person who looks at this page. */
function asksSomebody(call: ToolCall): boolean {
  if (isSettled(call.state)) return false;
  return (
    (call.state === 'approval-requested' && call.approval?.state === 'requested') ||
    call.questions?.some(({ state }) => state === 'asked') === true ||
    asksUser(call)
  );
}
