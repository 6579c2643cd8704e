import { expect, test } from 'vitest';
import { type Conversation, EMPTY_CONVERSATION } from './conversation.js';
import type { Approval, ToolCall } from './message.js';
import { askedProposal, SpokenTexts } from './spoken-texts.js';

/** A conversation with these calls, of which everything up to `cursor` is told. */
function conversation(cursor: number, ...calls: Array<Partial<ToolCall>>): Conversation {
  const parts = calls.map(
    (call, index) => ({ type: 'tool-call', id: `1.${index}`, call: toolCall(call) }) as const,
  );
  const message = { id: 'm', role: 'assistant', state: 'done', time: '', parts } as const;
  return { ...EMPTY_CONVERSATION, cursor, messages: [message] };
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

/** A call that waits for a decision, or no longer does. */
function proposed(number: number, approval: Partial<Approval> = {}): Partial<ToolCall> {
  const own: Approval = {
    id: `appr_${number}`,
    callId: `call_${number}`,
    runId: 'run_1',
    toolName: 'my_tool',
    state: 'requested',
    mayDecide: true,
    editable: true,
    expiresAt: '',
    voice: `Proposta ${number}?`,
    ...approval,
  };
  return { id: `call_${number}`, state: 'approval-requested', approval: own };
}

/** A call that gave its output at this place. */
function settled(number: number, endedSeq: number): Partial<ToolCall> {
  return { id: `call_${number}`, state: 'output-available', endedSeq, voice: `Fatto ${number}` };
}

const next = (spoken: SpokenTexts, now: Conversation, since: number | undefined): string[] =>
  spoken.next(now, askedProposal(now), since);

test('each text is said once', () => {
  const spoken = new SpokenTexts();
  const asks = conversation(2, proposed(1));
  expect(next(spoken, asks, 0)).toEqual(['Proposta 1?']);
  expect(next(spoken, asks, 0)).toEqual([]);
  const done = conversation(3, settled(1, 3));
  expect(next(spoken, done, 0)).toEqual(['Fatto 1']);
  expect(next(spoken, done, 0)).toEqual([]);
});

test('outputs of calls that nobody saw open are said, in the order in which they came', () => {
  const spoken = new SpokenTexts();
  expect(next(spoken, conversation(9, settled(1, 9), settled(2, 7), settled(3, 8)), 6)).toEqual([
    'Fatto 2',
    'Fatto 3',
    'Fatto 1',
  ]);
});

test('what settled before the page was opened is not said, however it is loaded', () => {
  const spoken = new SpokenTexts();
  expect(next(spoken, conversation(2, { id: 'call_1' }), 5)).toEqual([]);
  expect(next(spoken, conversation(3, settled(1, 3)), 5)).toEqual([]);
  expect(next(spoken, conversation(6, settled(1, 3), settled(2, 6)), 5)).toEqual(['Fatto 2']);
});

test('a proposal is asked where the past has ended, not half-way through it', () => {
  const spoken = new SpokenTexts();
  expect(next(spoken, conversation(2, proposed(1)), 5)).toEqual([]);
  const decided = proposed(1, { state: 'rejected' });
  expect(next(spoken, conversation(5, decided, proposed(2)), 5)).toEqual(['Proposta 2?']);
});

test('nothing is said, and nothing is lost, while nobody knows where the past ends', () => {
  const spoken = new SpokenTexts();
  const now = conversation(6, settled(1, 3), settled(2, 6), proposed(3));
  expect(next(spoken, now, undefined)).toEqual([]);
  expect(next(spoken, now, 5)).toEqual(['Fatto 2', 'Proposta 3?']);
});

test('of several proposals one is asked at a time, and none that has no words', () => {
  const spoken = new SpokenTexts();
  const { voice: _, ...silent } = proposed(0).approval as Approval;
  const call0 = { ...proposed(0), approval: silent };
  const all = conversation(1, call0, proposed(1), proposed(2));
  expect(askedProposal(all)?.id).toBe('appr_1');
  expect(next(spoken, all, 0)).toEqual(['Proposta 1?']);
  expect(next(spoken, conversation(2, call0, proposed(1, { state: 'approved' }), proposed(2)), 0)).toEqual([
    'Proposta 2?',
  ]);
  expect(askedProposal(conversation(1, call0))).toBeUndefined();
});

test('a proposal is not asked of who may not decide on it, or was refused', () => {
  const now = conversation(1, proposed(1, { mayDecide: false }), proposed(2), proposed(3));
  expect(askedProposal(now)?.id).toBe('appr_2');
  expect(askedProposal(now, new Set(['appr_2']))?.id).toBe('appr_3');
  expect(askedProposal(now, new Set(['appr_2', 'appr_3']))).toBeUndefined();
});
