import type { wire } from '@toolgate/client';
import type { Approval, Message, MessagePart, Question, Run, RunStatus, ToolCall } from './message.js';

/** The state that a space's events add up to. Immutable: unchanged parts stay the same objects. */
export interface Conversation {
  /** The cursor: `seq` of the last event that is included. */
  readonly cursor: number;
  readonly messages: readonly Message[];
  readonly runs: Readonly<Record<string, Run>>;
}

export const EMPTY_CONVERSATION: Conversation = { cursor: 0, messages: [], runs: {} };

/**
 * Adds one event. Events come in the order of their `seq`; an event that is already included changes nothing,
 * so that replaying is safe. An event type from a newer gateway only moves the cursor.
 */
export function fold(conversation: Conversation, event: wire.Event): Conversation {
  if (event.seq <= conversation.cursor) return conversation;
  return { ...take(conversation, { ...event, runId: event.runId ?? '' }), cursor: event.seq };
}

/** Every call in the conversation, oldest first. */
export function callsOf(conversation: Conversation): ToolCall[] {
  return conversation.messages.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === 'tool-call' ? [part.call] : [])),
  );
}

/** The open approvals, oldest first. */
export function openApprovals(conversation: Conversation): Approval[] {
  return callsOf(conversation).flatMap(({ approval }) => (approval?.state === 'requested' ? [approval] : []));
}

function take(conversation: Conversation, event: RunEvent): Conversation {
  switch (event.type) {
    case 'run-start':
      return withRun(conversation, event.runId, {
        id: event.runId,
        spaceId: event.spaceId,
        agent: event.agent,
        status: 'running',
        step: 0,
        ...(event.parent && { parentCallId: event.parent }),
      });
    case 'message':
      return said(conversation, event);
    case 'notification':
      return noticed(conversation, event);
    case 'step-start':
      return openReply(patchRun(conversation, event.runId, { step: event.step, status: 'running' }), event);
    case 'step-retry':
      return patchReply(conversation, event, ({ parts }) => ({
        parts: parts.filter((part) => !part.id.startsWith(`${event.step}.`)),
      }));
    case 'text-start':
    case 'reasoning-start':
      return write(conversation, event, { text: '', streaming: true });
    case 'text-delta':
    case 'reasoning-delta':
      return write(conversation, event, { delta: event.delta, streaming: true });
    case 'text-end':
    case 'reasoning-end':
      return write(conversation, event, { text: event.text, streaming: false });
    case 'tool-input-start':
      return patchCall(conversation, event, () => ({ state: 'input-streaming', inputText: '' }));
    case 'tool-input-delta':
      return patchCall(conversation, event, (call) => ({ inputText: call.inputText + event.inputTextDelta }));
    case 'tool-input-available':
      return patchCall(conversation, event, () => ({
        state: 'input-available',
        requestedAt: event.time,
        ...('input' in event && { input: event.input }),
        ...(event.deadline && { deadline: event.deadline }),
        reserved: event.reserved,
        consent: event.consent,
      }));
    case 'tool-question':
      return patchCall(conversation, event, (call) => ({
        questions: [...(call.questions ?? []), questionOf(event)],
      }));
    case 'tool-question-response':
      return patchCall(conversation, event, (call) => ({
        questions: call.questions?.map((question) =>
          question.id === event.questionId ? { ...question, state: answerState(event) } : question,
        ),
      }));
    case 'tool-approval-request':
      return patchCall(conversation, event, (call) => ({
        state: 'approval-requested',
        approval: {
          id: event.approvalId,
          callId: call.id,
          runId: call.runId,
          toolName: call.name,
          state: 'requested',
          ...rightsOf(event),
          expiresAt: event.expiresAt,
          ...('input' in event && { input: event.input }),
          ...(event.voice && { voice: event.voice.text }),
          ...rememberOf(event.terms),
        },
      }));
    case 'tool-approval-response':
      return patchCall(conversation, event, (call) => ({
        state: event.approved ? 'input-available' : call.state,
        ...(event.input !== undefined && { input: event.input }),
        ...(event.deadline && { deadline: event.deadline }),
        reserved: event.reserved,
        ...(call.approval && {
          approval: {
            ...call.approval,
            state: event.approved ? 'approved' : event.expired ? 'expired' : 'rejected',
            ...(event.reason && { reason: event.reason }),
            ...(event.by && { by: event.by }),
            ...(event.remembered && { remembered: true }),
          },
        }),
      }));
    case 'tool-executing':
      return patchCall(conversation, event, () => ({
        state: 'executing',
        startedAt: event.time,
        reserved: undefined,
        pause: event.pause as ToolCall['pause'],
        ...(event.claim && { claim: event.claim }),
        ...(event.child && { childRunId: event.child }),
      }));
    case 'tool-released':
      return patchCall(conversation, event, () => ({
        state: 'input-available',
        claim: undefined,
        reserved: undefined,
        progress: undefined,
      }));
    case 'tool-progress':
      return patchCall(conversation, event, () => ({ progress: event.progress }));
    case 'tool-output-available':
      return patchCall(conversation, event, () => ({
        state: 'output-available',
        output: event.output,
        endedAt: event.time,
        endedSeq: event.seq,
        log: event.log,
        warning: event.warning,
        voice: event.voice?.text,
      }));
    case 'tool-output-error':
      return patchCall(conversation, event, () => ({
        state: 'output-error',
        endedAt: event.time,
        endedSeq: event.seq,
        log: event.log,
        error: { code: event.code ?? 'EXECUTION_FAILED', message: event.errorText ?? 'the tool failed' },
      }));
    case 'tool-output-denied':
      return patchCall(conversation, event, () => ({
        state: 'output-denied',
        endedAt: event.time,
        endedSeq: event.seq,
        error: { code: 'DENIED', message: event.reason ?? 'the call was rejected' },
      }));
    case 'run-status':
      return patchRun(conversation, event.runId, { status: event.status as RunStatus });
    case 'run-finish':
      return closeReply(
        patchRun(conversation, event.runId, {
          status: event.status as RunStatus,
          reason: event.reason,
          ...(event.error && { error: event.error }),
        }),
        event,
      );
    default:
      return conversation;
  }
}

/** Which later calls a yes stands for, as the terms of a question say. */
function rememberOf(terms: unknown): Pick<Approval, 'remember'> {
  const { remember } = (terms ?? {}) as { remember?: unknown };
  return remember === 'first-in-space' || remember === 'until-revoked' ? { remember } : {};
}

/**
 * What this reader may do about an approval. A gateway that does not tell lets everybody try, and refuses the
 * decision.
 */
function rightsOf(event: Of<'tool-approval-request'>): Pick<Approval, 'mayDecide' | 'editable'> {
  return { mayDecide: event.mayDecide !== false, editable: event.editable !== false };
}

/** An event with its run id; the empty string for events without a run. */
type RunEvent = wire.Event & { runId: string };
type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;
type TextEvent = Of<
  'text-start' | 'text-delta' | 'text-end' | 'reasoning-start' | 'reasoning-delta' | 'reasoning-end'
>;
type ToolEvent = Extract<RunEvent, { toolCallId: string }>;
type InRun = { readonly runId: string; readonly seq: number; readonly time: string };

function said(conversation: Conversation, { message, runId, time }: Of<'message'>): Conversation {
  return {
    ...conversation,
    messages: [
      ...conversation.messages,
      {
        id: message.messageId,
        // What a plan posted stands where users speak, and is not theirs.
        role: message.origin ? 'notice' : 'user',
        state: 'done',
        time,
        parts: message.parts.map((part, index) =>
          part.type === 'text'
            ? { ...part, id: `${index}`, streaming: false }
            : {
                type: 'image',
                id: `${index}`,
                url: part.url,
                ...(part.mediaType && { mediaType: part.mediaType }),
              },
        ),
        ...(message.from && { from: message.from }),
        ...(message.origin && { origin: message.origin }),
        ...(runId && { runId, ...parentOf(conversation, runId) }),
      },
    ],
  };
}

function noticed(conversation: Conversation, event: Of<'notification'>): Conversation {
  const { title, body, seq, time, runId } = event;
  const part = { type: 'data', id: '0', name: 'notification', data: { title, body } } as const;
  const notice: Message = { id: `notice:${seq}`, role: 'notice', state: 'done', time, parts: [part] };
  return { ...conversation, messages: [...conversation.messages, runId ? { ...notice, runId } : notice] };
}

function write(
  conversation: Conversation,
  event: TextEvent,
  change: { text?: string; delta?: string; streaming: boolean },
): Conversation {
  const type = event.type.startsWith('text') ? 'text' : 'reasoning';
  return patchReply(openReply(conversation, event), event, (reply) => ({
    parts: upsert(reply.parts, event.id, (part) => {
      const before = part?.type === type ? part.text : '';
      return {
        type,
        id: event.id,
        text: change.text ?? before + (change.delta ?? ''),
        streaming: change.streaming,
      };
    }),
  }));
}

function patchCall(
  conversation: Conversation,
  event: ToolEvent,
  change: (call: ToolCall) => { [K in keyof ToolCall]?: ToolCall[K] | undefined },
): Conversation {
  const at = conversation.messages.findLastIndex((message) =>
    message.parts.some((part) => part.type === 'tool-call' && part.call.id === event.toolCallId),
  );
  const settle = (reply: Message): Partial<Message> => ({
    parts: upsert(
      reply.parts,
      partId(reply, event.toolCallId) ?? `${stepOf(conversation, event.runId)}.${event.toolCallId}`,
      (part, id) => {
        const call = part?.type === 'tool-call' ? part.call : newCall(event);
        return { type: 'tool-call', id, call: defined({ ...call, ...change(call) }) };
      },
    ),
  });
  return at < 0
    ? patchReply(openReply(conversation, event), event, settle)
    : replaceMessage(conversation, at, settle);
}

function newCall(event: ToolEvent): ToolCall {
  return {
    id: event.toolCallId,
    runId: event.runId,
    spaceId: event.spaceId,
    // What the page calls it: a run may have to rename a client's tool.
    name: event.givenName ?? event.toolName,
    placement: event.placement,
    state: 'input-streaming',
    inputText: '',
    ...(event.agent && { askedBy: event.agent }),
  };
}

function questionOf(event: Of<'tool-question'>): Question {
  const { questionId, toolCallId, message, schema, url, expiresAt } = event;
  return {
    id: questionId,
    callId: toolCallId,
    message,
    expiresAt,
    state: 'asked',
    ...(schema !== undefined && { schema }),
    ...(url !== undefined && { url }),
  };
}

function answerState({ expired, action }: Of<'tool-question-response'>): Question['state'] {
  if (expired) return 'expired';
  return action === 'accept' ? 'answered' : action === 'decline' ? 'declined' : 'cancelled';
}

/**
 * Index of the agent's message that the run is writing: its last one, unless somebody has posted a message
 * since.
 */
function replyIndex(conversation: Conversation, runId: string): number {
  const at = conversation.messages.findLastIndex((message) => message.runId === runId);
  return conversation.messages[at]?.role === 'assistant' ? at : -1;
}

function openReply(conversation: Conversation, { runId, seq, time }: InRun): Conversation {
  if (replyIndex(conversation, runId) >= 0) return conversation;
  const reply: Message = {
    id: `${runId}:${seq}`,
    role: 'assistant',
    state: 'streaming',
    time,
    runId,
    parts: [],
    ...parentOf(conversation, runId),
  };
  return { ...conversation, messages: [...conversation.messages, reply] };
}

/** Ends every message of the run, including those that a new user message interrupted. */
function closeReply(conversation: Conversation, { runId }: InRun): Conversation {
  return {
    ...conversation,
    messages: conversation.messages.map((message) =>
      message.runId === runId && message.state === 'streaming'
        ? { ...message, state: 'done', parts: message.parts.map(still) }
        : message,
    ),
  };
}

function still(part: MessagePart): MessagePart {
  return (part.type === 'text' || part.type === 'reasoning') && part.streaming
    ? { ...part, streaming: false }
    : part;
}

function patchReply(
  conversation: Conversation,
  { runId }: { readonly runId: string },
  change: (reply: Message) => Partial<Message>,
): Conversation {
  const at = replyIndex(conversation, runId);
  return at < 0 ? conversation : replaceMessage(conversation, at, change);
}

function replaceMessage(
  conversation: Conversation,
  at: number,
  change: (message: Message) => Partial<Message>,
): Conversation {
  const messages = conversation.messages.map((message, index) =>
    index === at ? { ...message, ...change(message) } : message,
  );
  return { ...conversation, messages };
}

/** Replaces the part, or appends it; a part that begins ends the ones before it. */
function upsert(
  parts: readonly MessagePart[],
  id: string,
  make: (before: MessagePart | undefined, id: string) => MessagePart,
): MessagePart[] {
  const at = parts.findIndex((part) => part.id === id);
  return at < 0 ? [...parts.map(still), make(undefined, id)] : parts.with(at, make(parts[at], id));
}

function partId(message: Message, callId: string): string | undefined {
  return message.parts.find((part) => part.type === 'tool-call' && part.call.id === callId)?.id;
}

function stepOf(conversation: Conversation, runId: string): number {
  return conversation.runs[runId]?.step ?? 0;
}

function parentOf(conversation: Conversation, runId: string): { parentCallId?: string } {
  const parentCallId = conversation.runs[runId]?.parentCallId;
  return parentCallId ? { parentCallId } : {};
}

function withRun(conversation: Conversation, runId: string, run: Run): Conversation {
  return { ...conversation, runs: { ...conversation.runs, [runId]: run } };
}

function patchRun(conversation: Conversation, runId: string, change: Partial<Run>): Conversation {
  const run = conversation.runs[runId];
  return run ? withRun(conversation, runId, { ...run, ...change }) : conversation;
}

/** Removes members that are `undefined`, so that absent means absent. */
function defined(call: { [K in keyof ToolCall]: ToolCall[K] | undefined }): ToolCall {
  return Object.fromEntries(
    Object.entries(call).filter(([, value]) => value !== undefined),
  ) as unknown as ToolCall;
}
