import { useToolgateChat } from '@toolgate/react';
import { ArrowUp, MonitorSmartphone, Square } from 'lucide-react';
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { PAGE_TOOLS } from '../../conversation/page-tools.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import styles from './chat.module.css';
import { VoiceControls } from './voice-controls.tsx';

export interface ComposerProps {
  readonly pageTools: boolean;
  readonly onPageTools: (offered: boolean) => void;
}

/** The message input. Enter sends, Shift+Enter begins a new line, Escape stops the run. */
export function Composer({ pageTools, onPageTools }: ComposerProps) {
  const { send, stop, status, spaceId } = useToolgateChat();
  const [text, setText] = useState('');
  const area = useRef<HTMLTextAreaElement>(null);
  const isBusy = status !== 'ready' && status !== 'error';
  const isEmpty = text.trim() === '';
  useEffect(() => {
    if (globalThis.matchMedia('(pointer: fine)').matches) area.current?.focus();
    void spaceId;
  }, [spaceId]);
  const submit = (): void => {
    if (isEmpty) return;
    setText('');
    // A message that could not be sent stays in the conversation, with a button to send it again.
    send(text.trim()).catch(() => {});
  };
  // A run that has ended in the meantime needs no cancellation; other errors are shown above.
  const halt = (): void => void stop().catch(() => {});
  const press = (event: KeyboardEvent): void => {
    // Enter also confirms a word in an input method, which must not send the message.
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape' && isBusy) halt();
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      className={styles.composer}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={area}
        aria-label="Message"
        placeholder="Write a message"
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      <div className={styles.composerRow}>
        <Button
          size="small"
          variant="ghost"
          icon={<MonitorSmartphone />}
          aria-pressed={pageTools}
          title={`Tools that run in this page: ${Object.keys(PAGE_TOOLS).join(', ')}`}
          onClick={() => onPageTools(!pageTools)}
        >
          Page tools {pageTools ? 'on' : 'off'}
        </Button>
        <VoiceControls
          onWords={(words) =>
            setText((written) => (written.trim() ? `${written.trimEnd()} ${words}` : words))
          }
        />
        <span className={styles.composerHint}>{isBusy ? 'Esc stops the run' : 'Enter sends'}</span>
        {isBusy && <IconButton label="Stop" variant="default" icon={<Square />} onClick={halt} />}
        <IconButton type="submit" label="Send" variant="primary" icon={<ArrowUp />} disabled={isEmpty} />
      </div>
    </form>
  );
}
