import { type ReactNode, useMemo } from 'react';
import { Composer } from './composer.js';
import { useToolgateContext } from './context.js';
import { MessageView } from './message-view.js';
import type { ToolComponents } from './tool-component.js';
import { type ToolgateChatView, useToolgateChat } from './use-toolgate-chat.js';

export interface ToolgateChatProps {
  /** Accessible name of the chat. */
  readonly label?: string;
  readonly placeholder?: string;
  /** Shown while the conversation is empty. */
  readonly welcome?: ReactNode;
  /** Messages to start with, one click each. */
  readonly suggestions?: readonly string[];
  /** Merged with the provider's components. */
  readonly components?: ToolComponents;
  /** `auto` follows the page's `color-scheme`, and so the user's system where the page allows it. */
  readonly theme?: 'auto' | 'light' | 'dark';
  readonly className?: string;
}

/**
 * A complete chat that fills its container: streaming messages, tool calls with their state, approvals,
 * errors. Import `@toolgate/react/styles.css` once, or style the `tg-` classes yourself.
 */
export function ToolgateChat(props: ToolgateChatProps): ReactNode {
  const { label = 'Chat', placeholder = 'Write a message', suggestions = [], theme = 'auto' } = props;
  const { components } = useToolgateContext('ToolgateChat');
  const chat = useToolgateChat();
  const isEmpty = chat.messages.length === 0;
  const known = useMemo(() => ({ ...components, ...props.components }), [components, props.components]);
  return (
    <section
      className={['tg-chat', props.className].filter(Boolean).join(' ')}
      aria-label={label}
      data-theme={theme}
      data-status={chat.status}
    >
      <div className="tg-scroll">
        <div className="tg-log" role="log" aria-label="Messages" aria-busy={isBusy(chat)}>
          {isEmpty && (
            <Welcome {...{ suggestions, chat }}>{props.welcome ?? <h2>How can I help?</h2>}</Welcome>
          )}
          {chat.messages.map((message) => (
            <MessageView key={message.id} message={message} chat={chat} components={known} />
          ))}
          {chat.status === 'submitted' && <Working />}
        </div>
      </div>
      <Trouble chat={chat} />
      <Composer placeholder={placeholder} isBusy={isBusy(chat)} send={chat.send} stop={chat.stop} />
    </section>
  );
}

function isBusy({ status }: ToolgateChatView): boolean {
  return status !== 'ready' && status !== 'error';
}

function Welcome(props: { suggestions: readonly string[]; chat: ToolgateChatView; children: ReactNode }) {
  return (
    <div className="tg-welcome">
      {props.children}
      {props.suggestions.length > 0 && (
        <div className="tg-suggestions">
          {props.suggestions.map((suggestion) => (
            <button
              key={suggestion}
              type="button"
              onClick={() => void props.chat.send(suggestion).catch(shown)}
            >
              {suggestion}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function Working() {
  return (
    <p className="tg-working">
      <span className="tg-hidden">The agent is working</span>
      <i aria-hidden="true" />
      <i aria-hidden="true" />
      <i aria-hidden="true" />
    </p>
  );
}

/** Shows why the conversation is not up to date, and what to do about it. */
function Trouble({ chat }: { chat: ToolgateChatView }) {
  if (chat.connection === 'failed') {
    return (
      <div className="tg-trouble" role="alert">
        <span>No connection: {chat.error?.message ?? 'the gateway rejected it'}</span>
        <button type="button" onClick={chat.reconnect}>
          Connect again
        </button>
      </div>
    );
  }
  return (
    <>
      {chat.error && (
        <div className="tg-trouble" role="alert">
          {chat.error.message}
        </div>
      )}
      {chat.connection === 'waiting' && (
        <div className="tg-trouble tg-calm" role="status">
          Connection lost. Trying again…
        </div>
      )}
    </>
  );
}

/** Ignores an error that the chat itself keeps and shows. */
function shown(): void {}
