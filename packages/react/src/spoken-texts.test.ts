import { expect, test } from 'vitest';
import { type Conversation, EMPTY_CONVERSATION } from './conversation.js';
import type { ToolCall } from './message.js';
import { askedProposal, SpokenTexts } from './spoken-texts.js';

function conversation(...calls: Array<Partial<ToolCall>>): Conversation {
  const parts = calls.map(
    (call, index) => ({ type: 'tool-call', id: `1.${index}`, call: toolCall(call) }) as const,
  );
  const message = { id: 'm', role: 'assistant', state: 'done', time: '', parts } as const;
  return { ...EMPTY_CONVERSATION, messages: [message] };
}

function toolCall(call: Partial<ToolCall>): ToolCall {
  return {
    id: 'call_1',
    runId: 'run_1',
    spaceId: 'space_1',
    name: 'my_tool',
    placement: 'client',
    state: 'executing',
    inputText: '',
    ...call,
  };
}

const approval = {
  id: 'appr_1',
  callId: 'call_1',
  runId: 'run_1',
  toolName: 'my_tool',
  expiresAt: '',
  voice: 'Creare un foglio su Luce?',
} as const;

test('each text is said once', () => {
  const spoken = new SpokenTexts();
  const asks = conversation({
    state: 'approval-requested',
    approval: { ...approval, state: 'requested' },
  });
  expect(spoken.next(asks)).toEqual(['Creare un foglio su Luce?']);
  expect(spoken.next(asks)).toEqual([]);
  const done = conversation({ state: 'output-available', voice: 'Foglio creato' });
  expect(spoken.next(done)).toEqual(['Foglio creato']);
  expect(spoken.next(done)).toEqual([]);
});

test('what ended before the page was opened is not said', () => {
  const spoken = new SpokenTexts();
  expect(spoken.next(conversation({ state: 'output-available', voice: 'Foglio creato' }))).toEqual([]);
  const decided = conversation({
    state: 'output-denied',
    approval: { ...approval, state: 'rejected' },
  });
  expect(spoken.next(decided)).toEqual([]);
});

test('of several proposals one is asked at a time, and none that has no words', () => {
  const spoken = new SpokenTexts();
  const call = (number: number, state: 'requested' | 'approved', voice?: string): Partial<ToolCall> => {
    const { voice: _, ...silent } = approval;
    const own = { ...silent, id: `appr_${number}`, state, ...(voice === undefined ? {} : { voice }) };
    return { id: `call_${number}`, state: 'approval-requested', approval: own };
  };
  const all = conversation(call(0, 'requested'), call(1, 'requested', 'Uno?'), call(2, 'requested', 'Due?'));
  expect(askedProposal(all)?.id).toBe('appr_1');
  expect(spoken.next(all)).toEqual(['Uno?']);
  const first = conversation(call(0, 'requested'), call(1, 'approved', 'Uno?'), call(2, 'requested', 'Due?'));
  expect(spoken.next(first)).toEqual(['Due?']);
  expect(askedProposal(conversation(call(0, 'requested')))).toBeUndefined();
});
