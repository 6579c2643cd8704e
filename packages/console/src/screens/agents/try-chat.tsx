import { ToolgateChatProvider, useToolgateChat } from '@toolgate/react';
import { ArrowUp, MessageSquare, Square, SquarePen } from 'lucide-react';
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { MessageView } from '../../conversation/message-view.tsx';
import { AGENT_TOOLS } from '../../conversation/page-tools.ts';
import { useClient } from '../../data/gateway.tsx';
import { IconButton, LinkButton, Spinner } from '../../ui/button.tsx';
import { Empty } from '../../ui/states.tsx';
import styles from './agents.module.css';

export interface TryChatProps {
  readonly name: string;
  /** The revision that answers. */
  readonly revision: number;
}

/** A chat with the agent as it was saved last. */
export function TryChat({ name, revision }: TryChatProps) {
  const client = useClient();
  return (
    <ToolgateChatProvider client={client} agent={name} tools={AGENT_TOOLS}>
      <section className={styles.try} aria-label="Try">
        <Head revision={revision} />
        <Messages name={name} />
        <Composer name={name} />
      </section>
    </ToolgateChatProvider>
  );
}

function Head({ revision }: { readonly revision: number }) {
  const { open, run, messages } = useToolgateChat();
  return (
    <div className={styles.bar}>
      <h3>Try revision {revision}</h3>
      <span className={styles.state} />
      {run && (
        <LinkButton size="small" variant="ghost" href={`/runs/${run.id}`}>
          Show the run
        </LinkButton>
      )}
      <IconButton
        size="small"
        label="New conversation"
        icon={<SquarePen />}
        disabled={messages.length === 0}
        onClick={() => open(undefined)}
      />
    </div>
  );
}

function Messages({ name }: { readonly name: string }) {
  const { messages, status, resend, error } = useToolgateChat();
  const log = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void messages;
    log.current?.scrollTo({ top: log.current.scrollHeight });
  }, [messages]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <div ref={log} className={styles.log} role="log" aria-label="Messages" tabIndex={0}>
      {messages.length === 0 && (
        <Empty icon={<MessageSquare />} title={`Talk to ${name}`}>
          Save a change and ask again: the next answer follows the new revision.
        </Empty>
      )}
      {messages.map((message) => (
        <MessageView key={message.id} message={message} resend={resend} />
      ))}
      {status === 'submitted' && <Spinner />}
      {error && (
        <p className={styles.trouble} role="alert">
          {error.message}
        </p>
      )}
    </div>
  );
}

function Composer({ name }: { readonly name: string }) {
  const { send, stop, status } = useToolgateChat();
  const [text, setText] = useState('');
  const isBusy = status !== 'ready' && status !== 'error';
  const submit = (): void => {
    if (text.trim() === '') return;
    setText('');
    // A message that could not be sent stays in the conversation, with a button to send it again.
    send(text.trim()).catch(() => {});
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
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
        rows={1}
        aria-label={`Message to ${name}`}
        placeholder="Write a message"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      {/* A run that has ended in the meantime needs no cancellation. */}
      {isBusy && <IconButton label="Stop" icon={<Square />} onClick={() => void stop().catch(() => {})} />}
      <IconButton
        type="submit"
        variant="primary"
        label="Send"
        icon={<ArrowUp />}
        disabled={text.trim() === ''}
      />
    </form>
  );
}
