import { Send, X } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../data/describe-error.ts';
import { useClient } from '../data/gateway.tsx';
import { Button } from '../ui/button.tsx';
import { Field, TextArea } from '../ui/field.tsx';
import styles from './asks.module.css';

export interface ResultFormProps {
  readonly runId: string;
  readonly toolCallId: string;
  readonly onDone?: () => void;
}

/** Answers an open client call by hand: with a result in JSON, or an error that the model reads. */
export function ResultForm({ runId, toolCallId, onDone }: ResultFormProps) {
  const client = useClient();
  const [text, setText] = useState('{\n  \n}');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const send = async (make: () => { result: unknown } | { error: string }): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await client.tools.submitRunResult(runId, { toolCallId, source: 'console', ...make() });
      onDone?.();
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className={styles.ask}>
      <Field
        label="Result"
        hint="JSON. A text that is not JSON is sent as a text."
        error={error === undefined ? undefined : describeError(error).detail}
      >
        <TextArea
          mono
          rows={4}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </Field>
      <div className={styles.actions}>
        <Button
          variant="primary"
          busy={busy}
          icon={<Send />}
          onClick={() => void send(() => ({ result: parse(text) }))}
        >
          Send the result
        </Button>
        <Button
          variant="danger"
          icon={<X />}
          onClick={() => void send(() => ({ error: text.trim() || 'failed' }))}
        >
          Send as an error
        </Button>
      </div>
    </div>
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
