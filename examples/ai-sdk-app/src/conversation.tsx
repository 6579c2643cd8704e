import { Markdown } from '@toolgate/react/markdown';
import { isToolUIPart, type UIMessage } from 'ai';
import { useEffect, useRef } from 'react';
import { runOf } from './run.ts';
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
  const lastTop = useRef(0);
  const isAsking = messages.at(-1)?.role === 'user';
  useEffect(() => {
    // Whoever has sent something wants to see what comes of it, wherever they were reading.
    if (isAsking) isAtEnd.current = true;
    if (isAtEnd.current) scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  }, [messages, isWaiting, isAsking]);
  // A message above the input, or a longer input, takes room away from the end.
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) element.scrollTo({ top: element.scrollHeight });
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div
      className="conversation"
      ref={scroller}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        // Only a reader scrolls up: when the end is far although nobody did, the content has grown meanwhile.
        const isNear = scrollHeight - scrollTop - clientHeight < NEAR_END;
        if (isNear || scrollTop < lastTop.current) isAtEnd.current = isNear;
        lastTop.current = scrollTop;
      }}
    >
      <div role="log" aria-label="Conversation">
        {messages.map((message) => (
          <article key={message.id} className={message.role}>
            {message.parts.map((part, index) => (
              <Part key={index} part={part} role={message.role} decide={decide} />
            ))}
            {runOf(message)?.status === 'cancelled' && <p className="waiting">Stopped.</p>}
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

interface PartProps {
  part: UIMessage['parts'][number];
  role: UIMessage['role'];
  decide: Decide;
}

function Part({ part, role, decide }: PartProps) {
  if (isToolUIPart(part)) return <ToolCard part={part} decide={decide} />;
  if (part.type !== 'text' || !part.text) return null;
  if (role === 'user') return <p className="text">{part.text}</p>;
  return (
    <div className="markdown">
      <Markdown text={part.text} />
    </div>
  );
}
