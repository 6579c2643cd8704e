import * as ai from '@sdk/ai';
import { useChat } from '@sdk/react';
import { type FormEvent, useState } from 'react';
import { api, cancel, chatId, decide, dialect, headers } from './gateway.ts';
import { clientTools, run } from './tools.ts';

/** A part, whatever the major. */
interface Piece {
  type: string;
  text?: string;
  state?: string;
  toolCallId?: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  approval?: { id: string };
  data?: { approvalId: string; toolCallId: string };
}

// v5 has no approvals.
const isApproved =
  'lastAssistantMessageIsCompleteWithApprovalResponses' in ai
    ? ai.lastAssistantMessageIsCompleteWithApprovalResponses
    : () => false;

const transport = new ai.DefaultChatTransport({
  api: `${api}?dialect=${dialect}`,
  headers,
  body: { clientTools },
  prepareReconnectToStreamRequest: ({ id }) => ({ api: `${api}/${id}/stream?dialect=${dialect}`, headers }),
});

export function Chat({ past }: { past: ai.UIMessage[] }) {
  const chat = useChat({
    id: chatId,
    messages: past,
    resume: true,
    transport,
    sendAutomaticallyWhen: (options) =>
      ai.lastAssistantMessageIsCompleteWithToolCalls(options) || isApproved(options),
    onToolCall: ({ toolCall: { toolName: tool, toolCallId, input } }) => {
      run(tool, input).then(
        (output) => chat.addToolOutput({ tool, toolCallId, output }),
        (error) => chat.addToolOutput({ tool, toolCallId, state: 'output-error', errorText: error.message }),
      );
    },
  });
  const [text, setText] = useState('');
  const send = (event: FormEvent) => {
    event.preventDefault();
    chat.sendMessage({ text });
    setText('');
  };
  const answer: Answer = async (id, approved, input) => {
    if (input) await decide(id, { approved, input });
    await chat.addToolApprovalResponse({ id, approved });
  };
  const answerInV5: Answer = async (id, approved, input) => {
    await decide(id, { approved, input });
    await chat.sendMessage();
  };
  return (
    <main data-status={chat.status}>
      {chat.messages.map(({ id, role, parts }) => (
        <article key={id} data-role={role}>
          {(parts as Piece[]).map((part, index) => (
            <Part key={index} part={part} answer={dialect === 'v5' ? answerInV5 : answer} />
          ))}
        </article>
      ))}
      <form onSubmit={send}>
        <input aria-label="message" value={text} onChange={(event) => setText(event.target.value)} />
      </form>
      <button type="button" onClick={() => cancel(chat.messages)}>
        stop
      </button>
      <output>{chat.error?.message}</output>
    </main>
  );
}

type Answer = (approvalId: string, approved: boolean, input?: unknown) => Promise<void>;

function Part({ part, answer }: { part: Piece; answer: Answer }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  const asks = part.state === 'approval-requested' ? part.approval?.id : part.data?.approvalId;
  return (
    <>
      {part.toolCallId && (
        <pre data-tool={part.type.slice('tool-'.length)} data-state={part.state}>
          {JSON.stringify(part.input)} {JSON.stringify(part.output) ?? part.errorText}
        </pre>
      )}
      {asks && (
        <fieldset>
          <button type="button" onClick={() => answer(asks, true)}>
            yes
          </button>
          <button type="button" onClick={() => answer(asks, false)}>
            no
          </button>
          <button type="button" onClick={() => answer(asks, true, { city: 'Rome' })}>
            yes, but Rome
          </button>
        </fieldset>
      )}
    </>
  );
}
