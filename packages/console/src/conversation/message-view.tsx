import type { Message, MessagePart } from '@toolgate/react';
import { RotateCw } from 'lucide-react';
import { memo } from 'react';
import { Button } from '../ui/button.tsx';
import { Markdown } from '../ui/markdown.tsx';
import { showControls } from '../ui/visible-text.ts';
import styles from './message.module.css';
import { ToolCard } from './tool-card.tsx';

export interface MessageViewProps {
  readonly message: Message;
  readonly resend?: (messageId: string) => Promise<void>;
}

/** One message of the conversation. */
export const MessageView = memo(function MessageView({ message, resend }: MessageViewProps) {
  if (message.role === 'notice') return <Notice message={message} />;
  if (message.role === 'user') return <UserMessage message={message} {...(resend && { resend })} />;
  return (
    <article className={styles.message} aria-label="Agent">
      {message.parts.map((part) => (
        <Part key={part.id} part={part} />
      ))}
    </article>
  );
});

function UserMessage({ message, resend }: MessageViewProps) {
  return (
    <article className={styles.message} aria-label="You">
      <div className={styles.user} data-state={message.state}>
        {message.parts.map((part) => (part.type === 'text' ? showControls(part.text) : null))}
        {message.parts.some((part) => part.type === 'image') && ' [image]'}
      </div>
      {message.state === 'sending' && <span className={styles.userNote}>Sending…</span>}
      {message.state === 'failed' && (
        <span className={styles.userNote}>
          Not sent.{' '}
          <Button size="small" icon={<RotateCw />} onClick={() => void resend?.(message.id).catch(() => {})}>
            Send again
          </Button>
        </span>
      )}
    </article>
  );
}

function Notice({ message }: { readonly message: Message }) {
  const words = message.parts.flatMap((part) => {
    if (part.type === 'text') return [part.text];
    if (part.type !== 'data') return [];
    const { title, body } = part.data as { title?: string; body?: string };
    return [[title, body].filter(Boolean).join(' – ')];
  });
  return (
    <div className={styles.notice}>
      {message.origin?.type === 'plan' ? 'A plan was due: ' : ''}
      {showControls(words.join(' '))}
    </div>
  );
}

function Part({ part }: { readonly part: MessagePart }) {
  switch (part.type) {
    case 'text':
      return <Markdown text={part.text} />;
    case 'reasoning':
      return (
        <details className={styles.reasoning} open={part.streaming || undefined}>
          <summary>{part.streaming ? 'Reasoning…' : 'Reasoning'}</summary>
          <div>
            <Markdown text={part.text} />
          </div>
        </details>
      );
    case 'tool-call':
      return <ToolCard call={part.call} />;
    default:
      return null;
  }
}
