import { isToolUIPart, type UIMessage } from 'ai';
import { useEffect, useRef } from 'react';
import { type Decide, ToolCard } from './tool-card.tsx';

/** So near to the end, in pixels, the reader follows what is written. */
const NEAR_END = 120;

interface ConversationProps {
  messages: UIMessage[];
  /** The agent was asked and has said nothing yet. */
  isWaiting: boolean;
  decide: Decide;
}

export function Conversation({ messages, isWaiting, decide }: ConversationProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current) scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  }, [messages, isWaiting]);
  return (
    <div
      className="conversation"
      ref={scroller}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
      }}
    >
      <div role="log" aria-label="Conversation">
        {messages.map((message) => (
          <article key={message.id} className={message.role}>
            {message.parts.map((part, index) => (
              <Part key={index} part={part} decide={decide} />
            ))}
          </article>
        ))}
        {isWaiting && (
          <p className="waiting" role="status">
            Thinking…
          </p>
        )}
      </div>
    </div>
  );
}

function Part({ part, decide }: { part: UIMessage['parts'][number]; decide: Decide }) {
  if (part.type === 'text') return part.text ? <p className="text">{part.text}</p> : null;
  return isToolUIPart(part) ? <ToolCard part={part} decide={decide} /> : null;
}
