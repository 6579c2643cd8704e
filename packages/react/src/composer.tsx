import { type FormEvent, type KeyboardEvent, type ReactNode, useState } from 'react';
import { SendIcon, StopIcon } from './icons.js';

export interface ComposerProps {
  readonly placeholder: string;
  readonly isBusy: boolean;
  readonly send: (text: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** The message input. Enter sends, Shift+Enter begins a new line, Escape cancels the run. */
export function Composer({ placeholder, isBusy, send, stop }: ComposerProps): ReactNode {
  const [text, setText] = useState('');
  const isEmpty = text.trim() === '';
  const submit = (event?: FormEvent): void => {
    event?.preventDefault();
    if (isEmpty) return;
    setText('');
    // The message stays in the chat as failed, with a button to retry it.
    send(text.trim()).catch(() => {});
  };
  // A run that ended in the meantime needs no cancellation; the chat shows other errors.
  const halt = (): void => void stop().catch(() => {});
  const press = (event: KeyboardEvent): void => {
    // Enter also confirms a word in an input method, which must not send the message.
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape' && isBusy) halt();
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <form className="tg-composer" onSubmit={submit}>
      <textarea
        aria-label="Message"
        placeholder={placeholder}
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      {isBusy && (
        <button type="button" className="tg-icon tg-stop" aria-label="Stop" title="Stop (Esc)" onClick={halt}>
          <StopIcon />
        </button>
      )}
      {(!isBusy || !isEmpty) && (
        <button
          type="submit"
          className="tg-icon tg-send"
          aria-label="Send"
          title="Send (Enter)"
          disabled={isEmpty}
        >
          <SendIcon />
        </button>
      )}
    </form>
  );
}
