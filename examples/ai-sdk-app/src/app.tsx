import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai';
import { type FormEvent, useState } from 'react';
import { clientTools, runTool } from './tools.ts';

const transport = new DefaultChatTransport({
  api: '/api/chat', // the gateway answers here
  body: { clientTools }, // and its agent may call these
});

export function App() {
  const { messages, sendMessage, addToolOutput, status, error } = useChat({
    transport,
    // When every call of the page has its result, the agent goes on.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall({ toolCall: { toolName: tool, toolCallId, input } }) {
      // Not awaited: the chat reads on while the tool runs.
      runTool(tool, input).then(
        (output) => addToolOutput({ tool, toolCallId, output }),
        ({ message }) => addToolOutput({ tool, toolCallId, state: 'output-error', errorText: message }),
      );
    },
  });
  const [text, setText] = useState('Please paint page "rebeccapurple".');
  const send = (event: FormEvent) => {
    event.preventDefault();
    sendMessage({ text });
    setText('');
  };
  return (
    <main>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {message.parts.map(showPart)}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button type="submit" disabled={status !== 'ready' || !text}>
          Send
        </button>
      </form>
    </main>
  );
}

function showPart(part: UIMessage['parts'][number], index: number) {
  if (part.type === 'text') return <p key={index}>{part.text}</p>;
  if (isToolUIPart(part)) {
    const { state, input, output, errorText } = part;
    return (
      <pre key={index} data-state={state}>
        {getToolName(part)} {JSON.stringify(input)} → {errorText ?? JSON.stringify(output) ?? '…'}
      </pre>
    );
  }
  return null;
}
