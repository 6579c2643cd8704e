import { memo, type ReactNode } from 'react';
import { Markdown } from './markdown.js';
import type { Message, MessagePart } from './message.js';
import { ToolCallView } from './tool-call-view.js';
import type { ToolComponents } from './tool-component.js';
import type { ToolgateChatView } from './use-toolgate-chat.js';

export interface MessageViewProps {
  readonly message: Message;
  readonly chat: Pick<ToolgateChatView, 'decide' | 'resend'>;
  readonly components: ToolComponents;
}

/** One message with all its parts. Rendered again only if the message itself has changed. */
export const MessageView: (props: MessageViewProps) => ReactNode = memo(
  ({ message, chat, components }: MessageViewProps) => {
    if (message.role === 'assistant' && message.parts.length === 0) return null;
    return (
      <article
        className={`tg-message tg-${message.role}`}
        data-state={message.state}
        aria-label={SPEAKERS[message.role]}
      >
        {message.parts.map((part) => (
          <PartView key={part.id} part={part} role={message.role} chat={chat} components={components} />
        ))}
        {message.state === 'failed' && (
          <p className="tg-failed">
            Not sent.{' '}
            <button type="button" onClick={() => void chat.resend(message.id).catch(() => {})}>
              Try again
            </button>
          </p>
        )}
      </article>
    );
  },
  (before, after) => before.message === after.message && before.components === after.components,
);

const SPEAKERS = { user: 'You', assistant: 'Agent', notice: 'Notice' } as const;

function PartView(
  props: Pick<MessageViewProps, 'chat' | 'components'> & { part: MessagePart; role: Message['role'] },
): ReactNode {
  const { part, chat, components, role } = props;
  switch (part.type) {
    case 'text':
      return (
        <div className="tg-text" data-streaming={part.streaming || undefined}>
          {role === 'user' ? part.text : <Markdown text={part.text} />}
        </div>
      );
    case 'reasoning':
      return (
        <details className="tg-reasoning">
          <summary>{part.streaming ? 'Thinking…' : 'Thought about it'}</summary>
          <div>{part.text}</div>
        </details>
      );
    case 'tool-call':
      return <ToolCallView call={part.call} components={components} decide={chat.decide} />;
    case 'image':
      return <img className="tg-image" src={part.url} alt="" />;
    case 'data':
      return <Data name={part.name} data={part.data} />;
  }
}

function Data({ name, data }: { name: string; data: unknown }) {
  const { title = name, body } = data as { title?: string; body?: string };
  return (
    <div className="tg-text">
      <strong>{title}</strong>
      {body && <p>{body}</p>}
    </div>
  );
}
