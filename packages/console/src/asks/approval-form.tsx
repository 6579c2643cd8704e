import { useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Check, Pencil, X } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { describeError } from '../data/describe-error.ts';
import { useClient } from '../data/gateway.tsx';
import { Button } from '../ui/button.tsx';
import { Input } from '../ui/field.tsx';
import { JsonView } from '../ui/json-view.tsx';
import { Loading } from '../ui/states.tsx';
import styles from './asks.module.css';
import { Deadline } from './deadline.tsx';
import { useToolSchema } from './use-tool-schema.ts';

const SchemaForm = lazy(() =>
  import('../ui/schema-form/schema-form.tsx').then(({ SchemaForm: form }) => ({ default: form })),
);

/** What an approval is about. */
export type ApprovalSubject = Pick<
  wire.OpenApproval,
  'approvalId' | 'toolName' | 'input' | 'editable' | 'agent' | 'expiresAt' | 'remember' | 'voice'
>;

type Mode = 'look' | 'edit' | 'reject';

/** Lets a person approve a call, change its input first, or reject it with a reason that the model reads. */
export function ApprovalForm({ approval }: { readonly approval: ApprovalSubject }) {
  const client = useClient();
  const queries = useQueryClient();
  const schema = useToolSchema(approval.agent, approval.toolName, approval.input);
  const [mode, setMode] = useState<Mode>('look');
  const [input, setInput] = useState(approval.input);
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const decide = async (decision: Parameters<typeof client.approvals.decide>[1]): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await client.approvals.decide(approval.approvalId, decision);
      await queries.invalidateQueries({ queryKey: ['inbox'] });
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className={styles.ask}>
      {approval.voice && <p>{approval.voice}</p>}
      {mode === 'edit' ? (
        <Suspense fallback={<Loading rows={3} />}>
          <SchemaForm schema={schema} value={input} onChange={setInput} label="Input to run with" />
        </Suspense>
      ) : (
        approval.input !== undefined && <JsonView value={approval.input} open={2} label="Input" />
      )}
      {error !== undefined && (
        <p className={styles.problem} role="alert">
          {describeError(error).detail}
        </p>
      )}
      {mode === 'reject' ? (
        <form
          className={styles.actions}
          onSubmit={(event) => {
            event.preventDefault();
            void decide({ approved: false, ...(reason && { reason }) });
          }}
        >
          <Input
            className={styles.reason}
            aria-label="Reason"
            placeholder="Reason, which the model reads"
            autoFocus
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          <Button type="submit" variant="danger" busy={busy} icon={<X />}>
            Reject
          </Button>
          <Button variant="ghost" onClick={() => setMode('look')}>
            Back
          </Button>
        </form>
      ) : (
        <div className={styles.actions}>
          <Button
            variant="primary"
            busy={busy}
            icon={<Check />}
            onClick={() => void decide({ approved: true, ...(mode === 'edit' && { input }) })}
          >
            {mode === 'edit' ? 'Approve with changes' : approval.remember ? 'Approve from now on' : 'Approve'}
          </Button>
          {mode === 'look' && approval.remember && (
            <Button icon={<Check />} onClick={() => void decide({ approved: true, remember: false })}>
              Approve once
            </Button>
          )}
          {mode === 'look' && approval.editable && (
            <Button icon={<Pencil />} onClick={() => setMode('edit')}>
              Edit
            </Button>
          )}
          {mode === 'edit' && (
            <Button variant="ghost" onClick={() => setMode('look')}>
              Discard changes
            </Button>
          )}
          <Button variant="danger" icon={<X />} onClick={() => setMode('reject')}>
            Reject…
          </Button>
          <Deadline time={approval.expiresAt} words="rejected without an answer" />
        </div>
      )}
    </div>
  );
}
