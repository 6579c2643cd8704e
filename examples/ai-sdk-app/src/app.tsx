import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai';
import { useChatId, usePast } from './chat-id.ts';
import { Composer } from './composer.tsx';
import { Conversation } from './conversation.tsx';
import { Problem } from './problem.tsx';
import { clientTools, runTool } from './tools.ts';

const transport = new DefaultChatTransport({
  api: '/api/chat', // the gateway answers here
  body: { clientTools }, // and its agent may call these
});

const suggestions = [
  'Paint page "rebeccapurple"',
  'Describe page in detail',
  'Send postcard "Ada" "Greetings from my page"',
];

export function App() {
  const [id, begin] = useChatId();
  const { past, problem, again } = usePast(id);
  return (
    <>
      <header>
        <h1>Page studio</h1>
        <button type="button" className="link" onClick={begin}>
          New conversation
        </button>
      </header>
      {problem && <Problem error={problem} retry={again} />}
      {past && <Chat key={id} id={id} past={past} />}
    </>
  );
}

function Chat({ id, past }: { id: string; past: UIMessage[] }) {
  const chat = useChat({
    id,
    messages: past,
    resume: true, // joins an answer under way, or a call that waits
    transport,
    // When every call of the page has its result, and every question its answer, the agent goes on.
    sendAutomaticallyWhen: (chat) =>
      lastAssistantMessageIsCompleteWithToolCalls(chat) ||
      lastAssistantMessageIsCompleteWithApprovalResponses(chat),
    onToolCall({ toolCall: { toolName: tool, toolCallId, input } }) {
      // Not awaited: the chat reads on while the tool runs.
      runTool(tool, input).then(
        (output) => addToolOutput({ tool, toolCallId, output }),
        ({ message }) => addToolOutput({ tool, toolCallId, state: 'output-error', errorText: message }),
      );
    },
  });
  const { messages, sendMessage, regenerate, addToolOutput, addToolApprovalResponse, status, error } = chat;
  const isBusy = status === 'submitted' || status === 'streaming';
  const send = (text: string) => sendMessage({ text });
  // A message that got no answer is sent again as it is: by its id the gateway knows whether it has it already.
  const retry = () => (messages.at(-1)?.role === 'user' ? sendMessage() : regenerate());
  return (
    <>
      {messages.length === 0 && !isBusy ? (
        <Welcome send={send} />
      ) : (
        <Conversation
          messages={messages}
          isWaiting={status === 'submitted'}
          decide={(approvalId, approved) => addToolApprovalResponse({ id: approvalId, approved })}
        />
      )}
      {error && <Problem error={error} retry={retry} />}
      <Composer isBusy={isBusy} send={send} stop={() => cancel(messages)} />
    </>
  );
}

function Welcome({ send }: { send: (text: string) => void }) {
  return (
    <section className="welcome">
      <h2>What shall we do with this page?</h2>
      <p>The agent calls functions that run in your browser, and asks before it sends anything.</p>
      <ul>
        {suggestions.map((text) => (
          <li key={text}>
            <button type="button" onClick={() => send(text)}>
              {text}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Stops the agent. `stop()` of `useChat` only stops listening to it. */
async function cancel(messages: UIMessage[]): Promise<void> {
  const run = messages.at(-1)?.parts.findLast((part) => part.type === 'data-run');
  const { runId } = (run as { data: { runId: string } } | undefined)?.data ?? {};
  if (runId) await fetch(`/api/runs/${runId}/cancel`, { method: 'POST' });
}
