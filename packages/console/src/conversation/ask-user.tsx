import type { ToolCall } from '@toolgate/react';
import { useState } from 'react';
import asks from '../asks/asks.module.css';
import { ResultForm } from '../asks/result-form.tsx';
import { useClient } from '../data/gateway.tsx';
import { Button } from '../ui/button.tsx';
import { Field, Input } from '../ui/field.tsx';
import { toastError } from '../ui/toast.tsx';
import { showControls } from '../ui/visible-text.ts';
import { AGENT_TOOLS, PAGE_TOOLS } from './page-tools.ts';

const CHOICES_MAX = 12;

/** Whether the call is open for clients: whoever gives the first result wins. */
export function isOpenForClients(call: ToolCall): boolean {
  const isWaiting = call.state === 'input-available' || call.state === 'executing';
  return call.placement === 'client' && call.deadline !== undefined && isWaiting;
}

/** Whether the call is an open client call that no code of this page answers: then its reader does. */
export function asksUser(call: ToolCall): boolean {
  if (!isOpenForClients(call) || call.state !== 'input-available') return false;
  return !Object.hasOwn(PAGE_TOOLS, call.name) && !Object.hasOwn(AGENT_TOOLS, call.name);
}

/** Answers a client call by hand: with one of the choices it names, with words, or with any JSON. */
export function AskUser({ call }: { readonly call: ToolCall }) {
  const client = useClient();
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState('');
  const { question, choices } = questionIn(call.input);
  const answer = async (result: unknown): Promise<void> => {
    setBusy(true);
    try {
      await client.tools.submitResult(call.spaceId, { toolCallId: call.id, runId: call.runId, result });
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  if (!question && choices.length === 0) return <ResultForm runId={call.runId} toolCallId={call.id} />;
  if (choices.length === 0)
    return (
      <form
        className={asks.ask}
        onSubmit={(event) => {
          event.preventDefault();
          void answer({ answer: text });
        }}
      >
        <Field label={showControls(question)}>
          <Input value={text} onChange={(event) => setText(event.target.value)} />
        </Field>
        <div className={asks.actions}>
          <Button type="submit" variant="primary" busy={busy} disabled={text.trim() === ''}>
            Answer
          </Button>
        </div>
      </form>
    );
  return (
    <div className={asks.ask}>
      {question && <p>{showControls(question)}</p>}
      <div className={asks.choices}>
        {choices.map((choice) => (
          <Button key={choice} busy={busy} onClick={() => void answer({ choice })}>
            {showControls(choice)}
          </Button>
        ))}
      </div>
    </div>
  );
}

function questionIn(input: unknown): { question: string; choices: string[] } {
  const members = (typeof input === 'object' && input !== null ? input : {}) as Record<string, unknown>;
  const question = [members.question, members.message, members.prompt].find((one) => typeof one === 'string');
  const list = [members.choices, members.options].find(Array.isArray) ?? [];
  const choices = list.filter((one: unknown) => typeof one === 'string').slice(0, CHOICES_MAX);
  return { question: (question as string) ?? '', choices };
}
