import { type KeyboardEvent, useState } from 'react';

interface ComposerProps {
  isBusy: boolean;
  isStopping: boolean;
  send: (text: string) => void;
  stop: () => void;
}

/** Enter sends, Shift and Enter begins a new line. */
export function Composer({ isBusy, isStopping, send, stop }: ComposerProps) {
  const [text, setText] = useState('');
  const submit = () => {
    if (isBusy || text.trim() === '') return;
    send(text);
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        aria-label="Message"
        placeholder="Ask the page studio"
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {isBusy ? (
        <button type="button" disabled={isStopping} onClick={stop}>
          {isStopping ? 'Stopping…' : 'Stop'}
        </button>
      ) : (
        <button type="submit" className="primary" disabled={text.trim() === ''}>
          Send
        </button>
      )}
    </form>
  );
}
