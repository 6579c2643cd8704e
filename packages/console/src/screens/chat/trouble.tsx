import { type Message, useToolgateChat } from '@toolgate/react';
import { RotateCw } from 'lucide-react';
import { useReach } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { classNames } from '../../ui/class-names.ts';
import { showControls } from '../../ui/visible-text.ts';
import styles from './chat.module.css';

/** Why the conversation does not go on, and what to do about it. */
export function Trouble() {
  const { connection, error, reconnect, messages, send } = useToolgateChat();
  // A gateway that is away is told above, once for the whole page.
  const reach = useReach();
  if (connection === 'failed')
    return (
      <div className={styles.trouble} role="alert">
        <span>This conversation cannot be followed: {error?.message ?? 'the gateway refused it'}</span>
        <Button size="small" icon={<RotateCw />} onClick={reconnect}>
          Connect again
        </Button>
      </div>
    );
  const last = lastWords(messages);
  return (
    <>
      {connection === 'waiting' && reach === 'live' && (
        <div className={classNames(styles.trouble, styles.calm)} role="status">
          <span>Connection lost. What happens meanwhile is stored, and shown when it is back.</span>
          <Button size="small" onClick={reconnect}>
            Try now
          </Button>
        </div>
      )}
      {error && connection !== 'waiting' && (
        <div className={styles.trouble} role="alert">
          <span>{showControls(error.message)}</span>
          {last && (
            <Button size="small" icon={<RotateCw />} onClick={() => void send(last).catch(() => {})}>
              Try again
            </Button>
          )}
        </div>
      )}
    </>
  );
}

/** The text of the last message, if it was stored; one that was not has a button of its own. */
function lastWords(messages: readonly Message[]): string | undefined {
  const last = messages.findLast(({ role }) => role === 'user');
  if (last?.state !== 'done') return undefined;
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('') || undefined;
}
