import { Radio } from 'lucide-react';
import { useState } from 'react';
import { useClient } from '../data/gateway.tsx';
import { Button } from '../ui/button.tsx';
import { Input } from '../ui/field.tsx';
import { toastError } from '../ui/toast.tsx';
import styles from './asks.module.css';

/** Sends the signal that a `waiting` call waits for. */
export function SignalForm({ callId }: { readonly callId: string }) {
  const client = useClient();
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    setBusy(true);
    try {
      await client.calls.signal(callId, text === '' ? null : text);
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className={styles.actions}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Input
        className={styles.reason}
        aria-label="Value of the signal"
        placeholder="Value of the signal, optional"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button type="submit" busy={busy} icon={<Radio />}>
        Send the signal
      </Button>
    </form>
  );
}
