import { type FormEvent, type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import type { ChatStore } from './chat-store.js';
import { QuestionIcon } from './icons.js';
import { changed, type Field, fieldsOf, inputOf } from './input-form.js';
import type { Approval } from './message.js';

export interface ApprovalViewProps {
  readonly approval: Approval;
  readonly decide: ChatStore['decide'];
}

type Mode = 'ask' | 'edit' | 'reject';

/**
 * The form of an approval: approve, approve with an edited input, or reject with a reason. Escape goes back. Who may not
 * decide reads what is asked, without the buttons.
 */
export function ApprovalView({ approval, decide }: ApprovalViewProps): ReactNode {
  const title = useId();
  const [mode, setMode] = useState<Mode>('ask');
  const [isDeciding, setDeciding] = useState(false);
  const [error, setError] = useState<string>();
  const answer = (decision: Parameters<ChatStore['decide']>[1]): void => {
    setDeciding(true);
    setError(undefined);
    decide(approval.id, decision).catch((reason: unknown) => {
      setDeciding(false);
      setError(reason instanceof Error ? reason.message : String(reason));
    });
  };
  const back = (): void => setMode('ask');
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' && mode !== 'ask') back();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a card everywhere
    <div className="tg-approval" role="group" aria-labelledby={title} onKeyDown={press}>
      <p className="tg-approval-title" id={title}>
        <QuestionIcon />
        <span>
          May I run <strong>{approval.toolName}</strong>?
        </span>
      </p>
      {approval.voice && <p className="tg-muted">{approval.voice}</p>}
      {mode !== 'edit' && <Input approval={approval} />}
      {error && (
        <p className="tg-approval-error" role="alert">
          {error}
        </p>
      )}
      {!approval.mayDecide && <p className="tg-muted">Waits for somebody who may decide</p>}
      {approval.mayDecide && mode === 'ask' && (
        <div className="tg-actions">
          <button
            type="button"
            className="tg-primary"
            disabled={isDeciding}
            onClick={() => answer({ approved: true })}
          >
            {approval.remember ? 'Always approve' : 'Approve'}
          </button>
          {approval.remember && (
            <button
              type="button"
              disabled={isDeciding}
              onClick={() => answer({ approved: true, remember: false })}
            >
              Approve once
            </button>
          )}
          {approval.editable && approval.input !== undefined && (
            <button type="button" disabled={isDeciding} onClick={() => setMode('edit')}>
              Edit
            </button>
          )}
          <button type="button" disabled={isDeciding} onClick={() => setMode('reject')}>
            Reject
          </button>
        </div>
      )}
      {mode === 'edit' && (
        <Edit
          value={approval.input}
          isDeciding={isDeciding}
          save={(input) => answer({ approved: true, input })}
          back={back}
        />
      )}
      {mode === 'reject' && (
        <Reject {...{ isDeciding, back }} send={(reason) => answer({ approved: false, ...reason })} />
      )}
    </div>
  );
}

function Input({ approval: { input, mayDecide } }: { approval: Approval }) {
  if (input === undefined) {
    return mayDecide ? <p className="tg-muted">You may decide, but not see its input.</p> : null;
  }
  const fields = fieldsOf(input);
  if (fields.length === 0) return null;
  return (
    <dl className="tg-fields">
      {fields.map(({ name, text }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function Edit(props: {
  value: unknown;
  isDeciding: boolean;
  save: (input: unknown) => void;
  back: () => void;
}) {
  const [fields, setFields] = useState(() => fieldsOf(props.value));
  const [problem, setProblem] = useState<string>();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const input = inputOf(fields);
    if ('problem' in input) setProblem(input.problem);
    else props.save(input.value);
  };
  return (
    <form onSubmit={submit}>
      <div className="tg-fields">
        {fields.map((field, index) => (
          // biome-ignore lint/a11y/noLabelWithoutControl: the control is in FieldInput
          <label key={field.name}>
            <span>{field.name}</span>
            <FieldInput
              field={field}
              isFirst={index === 0}
              change={(text) => setFields(changed(fields, field.name, text))}
            />
          </label>
        ))}
      </div>
      {problem && (
        <p className="tg-approval-error" role="alert">
          {problem}
        </p>
      )}
      <div className="tg-actions">
        <button type="submit" className="tg-primary" disabled={props.isDeciding}>
          Approve changes
        </button>
        <button type="button" onClick={props.back}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function FieldInput({
  field,
  isFirst,
  change,
}: {
  field: Field;
  isFirst: boolean;
  change: (text: string) => void;
}) {
  if (field.kind === 'boolean') {
    return (
      <input
        type="checkbox"
        checked={field.text === 'true'}
        onChange={(event) => change(String(event.target.checked))}
      />
    );
  }
  return (
    <textarea
      rows={1}
      // biome-ignore lint/a11y/noAutofocus: the person has just asked to edit
      autoFocus={isFirst}
      inputMode={field.kind === 'number' ? 'decimal' : 'text'}
      className={field.kind === 'json' ? 'tg-code' : undefined}
      value={field.text}
      onChange={(event) => change(event.target.value)}
    />
  );
}

function Reject(props: {
  isDeciding: boolean;
  back: () => void;
  send: (reason: { reason?: string }) => void;
}) {
  const [reason, setReason] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    props.send(reason.trim() === '' ? {} : { reason: reason.trim() });
  };
  return (
    <form onSubmit={submit}>
      <div className="tg-fields">
        <label>
          <span>Why not? The agent is told.</span>
          <input
            // biome-ignore lint/a11y/noAutofocus: the person has just asked to reject
            autoFocus
            placeholder="Optional"
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
      </div>
      <div className="tg-actions">
        <button type="submit" className="tg-danger" disabled={props.isDeciding}>
          Reject
        </button>
        <button type="button" onClick={props.back}>
          Cancel
        </button>
      </div>
    </form>
  );
}
