import { useToolgateChat } from '@toolgate/react';
import { ArrowDown } from 'lucide-react';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { MessageView } from '../../conversation/message-view.tsx';
import { Button, Spinner } from '../../ui/button.tsx';
import styles from './chat.module.css';
import { KillHint } from './kill-hint.tsx';
import { Welcome } from './welcome.tsx';

/** Distance from the end, in pixels, within which the list follows new text. */
const NEAR = 60;

/** The conversation. It follows its end, unless somebody has scrolled up. */
export function MessageList({ agent }: { readonly agent: string | undefined }) {
  const { messages, status, resend, spaceId, connection } = useToolgateChat();
  const log = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAway, setAway] = useState(false);
  const isEmpty = messages.length === 0;
  const toEnd = (): void => log.current?.scrollTo({ top: log.current.scrollHeight });
  const hasNone = useRef(isEmpty);
  useLayoutEffect(() => {
    hasNone.current = isEmpty;
  }, [isEmpty]);
  useLayoutEffect(() => {
    follows.current = true;
    void spaceId;
  }, [spaceId]);
  useEffect(() => {
    if (!column.current) return;
    // Also when a card opens or an image has loaded, not only when a message changes.
    // An empty conversation is read from its beginning.
    const observer = new ResizeObserver(() => follows.current && !hasNone.current && toEnd());
    observer.observe(column.current);
    return () => observer.disconnect();
  }, []);
  const scrolled = (): void => {
    const { scrollTop, scrollHeight, clientHeight } = log.current as HTMLDivElement;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
    setAway(!follows.current);
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <div ref={log} className={styles.log} role="log" aria-label="Messages" tabIndex={0} onScroll={scrolled}>
      <div ref={column} className={styles.column}>
        {isEmpty && spaceId === undefined && <Welcome agent={agent} />}
        {isEmpty && spaceId !== undefined && connection === 'connecting' && <Working words="Loading" />}
        <div className={styles.messages}>
          {messages.map((message) => (
            <MessageView key={message.id} message={message} resend={resend} />
          ))}
          {status === 'submitted' && <Working words="Thinking" />}
          {status === 'waiting_approval' && <KillHint />}
        </div>
      </div>
      {isAway && !isEmpty && (
        <div className={styles.jump}>
          <Button icon={<ArrowDown />} onClick={toEnd}>
            Latest
          </Button>
        </div>
      )}
    </div>
  );
}

function Working({ words }: { readonly words: string }) {
  return (
    <p className={styles.working}>
      <Spinner />
      {words}…
    </p>
  );
}
