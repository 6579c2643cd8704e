import { useChat } from '@ai-sdk/react';
import { sendWhenAnswered } from '@toolgate/client';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { useEffect, useState } from 'react';
import { loadPast, useChatId, usePast } from './chat-id.ts';
import { claim, holder } from './claim.ts';
import { Composer } from './composer.tsx';
import { Conversation } from './conversation.tsx';
import { Problem } from './problem.tsx';
import { isWorking, runOf } from './run.ts';
import { clientTools, runTool } from './tools.ts';
import { Turn } from './turn.ts';
import { useStop } from './use-stop.ts';

const transport = new DefaultChatTransport({
  api: '/api/chat', // the gateway answers here
  body: { clientTools, executor: { holder } }, // its agent may call these, in this browser first
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
      {problem && <Problem what="The conversation could not be loaded." error={problem} retry={again} />}
      {past && <Chat key={id} id={id} past={past} />}
    </>
  );
}

function Chat({ id, past }: { id: string; past: UIMessage[] }) {
  const [turn] = useState(() => new Turn(id));
  const [joinProblem, setJoinProblem] = useState<Error>();
  // One for each chat, not for each render: it knows what it has sent.
  const [sendAutomaticallyWhen] = useState(() => sendWhenAnswered());
  const chat = useChat({
    id,
    messages: past,
    resume: true, // joins an answer under way, or a call that waits
    transport,
    // When every call of the page has its result, and every question its answer, the agent goes on.
    sendAutomaticallyWhen,
    async onToolCall({ toolCall: { toolName: tool, toolCallId, input } }) {
      // Of several tabs with this chat, the one that sent the message runs its tools.
      if (!(await turn.isMine(joinAgain))) return;
      // Not awaited: the chat reads on while the tool runs.
      void claim(toolCallId, turn.isHeld).then((isOurs) => {
        // Another browser has run it.
        if (!isOurs) return joinAgain();
        return runTool(tool, input).then(
          (output) => addToolOutput({ tool, toolCallId, output }),
          ({ message }) => addToolOutput({ tool, toolCallId, state: 'output-error', errorText: message }),
        );
      });
    },
  });
  const { messages, setMessages, sendMessage, regenerate, resumeStream, status, error } = chat;
  const { addToolOutput, addToolApprovalResponse } = chat;
  const isBusy = status === 'submitted' || status === 'streaming';
  const run = runOf(messages.at(-1));
  const { stop, isStopping, problem } = useStop(run?.runId, isBusy);

  // The tab that was at work has finished or is gone: shows what it did, and goes on with what it left.
  const joinAgain = async () => {
    // An answer that has ended is part of the past; the one under way comes with its stream.
    const catchUp = async () => {
      const known = await loadPast(id);
      setMessages((now) => (known.some((message) => message.id === now.at(-1)?.id) ? known : now));
    };
    setJoinProblem(undefined);
    try {
      await catchUp();
      await resumeStream();
      await catchUp();
    } catch (error) {
      turn.end();
      setJoinProblem(error as Error);
    }
  };
  const isAtRest = status === 'ready' && messages.at(-1)?.role === 'assistant' && !isWorking(run);
  useEffect(() => {
    if (isAtRest) turn.end();
  });
  useEffect(() => turn.leave, [turn]);

  const ask = (request: () => Promise<void>) => {
    turn.take();
    void request();
  };
  const send = (text: string) => ask(() => sendMessage({ text }));
  // A message, result or decision that got no answer is sent again as it is: the gateway knows whether it has it already.
  const isUnanswered = messages.at(-1)?.role === 'user' || run?.status.startsWith('waiting_');
  const retry = () => ask(() => (isUnanswered ? sendMessage() : regenerate()));
  return (
    <>
      {messages.length === 0 && !isBusy ? (
        <Welcome send={send} />
      ) : (
        <Conversation
          messages={messages}
          isWaiting={status === 'submitted'}
          decide={(approvalId, approved) =>
            ask(async () => addToolApprovalResponse({ id: approvalId, approved }))
          }
        />
      )}
      {problem && <Problem what="The agent could not be stopped." error={problem} retry={stop} />}
      {joinProblem && (
        <Problem what="The conversation could not be loaded." error={joinProblem} retry={joinAgain} />
      )}
      {error && <Problem error={error} retry={retry} />}
      <Composer isBusy={isBusy} isStopping={isStopping} send={send} stop={stop} />
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
