import type { wire } from '@toolgate/client';
import { describe, expect, test } from 'vitest';
import { type Conversation, callsOf, EMPTY_CONVERSATION, fold, openApprovals } from './conversation.js';

const CALL = { toolCallId: 'call_1', toolName: 'showChart', placement: 'client' };
const DEADLINE = '2030-01-01T00:10:00Z';

/** Events of one run, each with the `seq` that it names. */
function story(...events: Record<string, unknown>[]): wire.Event[] {
  const common = { runId: 'run_1', spaceId: 'space_1', time: '2030-01-01T00:00:00Z' };
  return events.map((event) => ({ ...common, ...event }) as unknown as wire.Event);
}

function told(events: wire.Event[], from: Conversation = EMPTY_CONVERSATION): Conversation {
  return events.reduce(fold, from);
}

/** The conversation as a script: one line per message. */
function script(conversation: Conversation): string[] {
  return conversation.messages.map((message) => {
    const parts = message.parts.map((part) => {
      if (part.type === 'text') return part.text + (part.streaming ? '…' : '');
      if (part.type === 'reasoning') return `(${part.text})`;
      if (part.type === 'tool-call') return `[${part.call.name}: ${part.call.state}]`;
      return `<${part.type}>`;
    });
    return `${message.role}: ${parts.join(' ')}`;
  });
}

const START = { type: 'run-start', seq: 1e6, agent: 'a', depth: 0 };
const ASKED = {
  type: 'message',
  seq: 2e6,
  message: { messageId: 'msg_1', parts: [{ type: 'text', text: 'Draw!' }] },
};
const STEP = { type: 'step-start', seq: 3e6, step: 1 };
const OPENING = [START, ASKED, STEP];

describe('a conversation', () => {
  test('grows word by word and ends up as the whole part', () => {
    const events = story(
      ...OPENING,
      { type: 'text-start', seq: 3000001, id: '1.0' },
      { type: 'text-delta', seq: 3000002, id: '1.0', delta: 'Good ' },
      { type: 'text-delta', seq: 3000003, id: '1.0', delta: 'morn' },
      { type: 'text-end', seq: 4e6, id: '1.0', text: 'Good morning.' },
    );
    expect(script(told(events.slice(0, 6)))).toEqual(['user: Draw!', 'assistant: Good morn…']);
    expect(script(told(events))).toEqual(['user: Draw!', 'assistant: Good morning.']);
  });

  test('keeps what a call asks in the middle, its child run and its times', () => {
    const server = { ...CALL, placement: 'server' };
    const events = story(
      ...OPENING,
      { type: 'tool-input-available', seq: 4e6, ...server, input: {} },
      { type: 'tool-executing', seq: 5e6, ...server, child: 'run_2', time: '2030-01-01T00:00:01Z' },
      {
        type: 'tool-question',
        seq: 6e6,
        ...server,
        questionId: 'q_1',
        message: 'Which size?',
        schema: { type: 'object' },
        expiresAt: DEADLINE,
      },
      { type: 'tool-question-response', seq: 7e6, ...server, questionId: 'q_1', action: 'decline' },
      { type: 'tool-output-available', seq: 8e6, ...server, output: 1, time: '2030-01-01T00:00:04Z' },
    );
    const [asked] = callsOf(told(events.slice(0, 6)));
    expect(asked).toMatchObject({
      childRunId: 'run_2',
      startedAt: '2030-01-01T00:00:01Z',
      questions: [{ id: 'q_1', message: 'Which size?', state: 'asked' }],
    });
    const [done] = callsOf(told(events));
    expect(done).toMatchObject({ questions: [{ state: 'declined' }], endedAt: '2030-01-01T00:00:04Z' });
  });

  test('does not show what a plan posted as the words of a user', () => {
    const origin = { type: 'plan', planId: 'plan_1', dueAt: DEADLINE } as const;
    const due = { ...ASKED, message: { ...ASKED.message, origin } };
    const conversation = told(story(START, due));
    expect(script(conversation)).toEqual(['notice: Draw!']);
    expect(conversation.messages[0]?.origin).toEqual(origin);
  });

  test('thinks no longer when it speaks', () => {
    const events = story(
      ...OPENING,
      { type: 'reasoning-delta', seq: 3000001, id: '1.0', delta: 'hm' },
      { type: 'text-delta', seq: 3000002, id: '1.1', delta: 'So' },
    );
    expect(told(events).messages[1]?.parts).toMatchObject([{ streaming: false }, { streaming: true }]);
  });

  test('is the same with and without its deltas', () => {
    const events = story(
      ...OPENING,
      { type: 'reasoning-start', seq: 3000001, id: '1.0' },
      { type: 'reasoning-delta', seq: 3000002, id: '1.0', delta: 'hm' },
      { type: 'text-start', seq: 3000003, id: '1.1' },
      { type: 'text-delta', seq: 3000004, id: '1.1', delta: 'Here' },
      { type: 'tool-input-start', seq: 3000005, ...CALL },
      { type: 'reasoning-end', seq: 4e6, id: '1.0', text: 'hm' },
      { type: 'text-end', seq: 5e6, id: '1.1', text: 'Here' },
      { type: 'tool-input-available', seq: 6e6, ...CALL, input: {}, deadline: DEADLINE },
    );
    const durable = events.filter((event) => event.seq % 1e6 === 0);
    expect(script(told(events))).toEqual(script(told(durable)));
    expect(script(told(durable))).toEqual([
      'user: Draw!',
      'assistant: (hm) Here [showChart: input-available]',
    ]);
  });

  test('does not change when a stretch is told again', () => {
    const events = story(...OPENING, { type: 'text-delta', seq: 3000001, id: '1.0', delta: 'Hi' });
    const once = told(events);
    expect(told(events, once)).toBe(once);
  });

  test('forgets what a step had streamed when the step is tried again', () => {
    const events = story(
      ...OPENING,
      { type: 'text-delta', seq: 3000001, id: '1.0', delta: 'Half a' },
      { type: 'tool-input-start', seq: 3000002, ...CALL },
      { type: 'step-retry', seq: 4e6, step: 1, attempt: 2, notBefore: DEADLINE },
      { type: 'text-end', seq: 5e6, id: '1.0', text: 'Whole.' },
    );
    expect(script(told(events))).toEqual(['user: Draw!', 'assistant: Whole.']);
  });

  test('gives what is said after an interruption a message of its own', () => {
    const events = story(
      ...OPENING,
      { type: 'tool-input-available', seq: 4e6, ...CALL, input: {}, deadline: DEADLINE },
      {
        type: 'message',
        seq: 5e6,
        message: { messageId: 'msg_2', parts: [{ type: 'text', text: 'Never mind' }] },
      },
      { type: 'tool-output-error', seq: 6e6, ...CALL, code: 'SUPERSEDED', errorText: 'something new' },
      { type: 'step-start', seq: 7e6, step: 2 },
      { type: 'text-end', seq: 8e6, id: '2.0', text: 'All right.' },
    );
    expect(script(told(events))).toEqual([
      'user: Draw!',
      'assistant: [showChart: output-error]',
      'user: Never mind',
      'assistant: All right.',
    ]);
  });

  test('follows a call from its first letter to its output', () => {
    const events = story(
      ...OPENING,
      { type: 'tool-input-start', seq: 3000001, ...CALL },
      { type: 'tool-input-delta', seq: 3000002, ...CALL, inputTextDelta: '{"title"' },
      { type: 'tool-input-available', seq: 4e6, ...CALL, input: { title: 'T' }, deadline: DEADLINE },
      { type: 'tool-executing', seq: 5e6, ...CALL, claim: { holder: 'tab', until: DEADLINE } },
      { type: 'tool-progress', seq: 5000001, ...CALL, progress: 0.5 },
      { type: 'tool-released', seq: 6e6, ...CALL },
      { type: 'tool-output-available', seq: 7e6, ...CALL, output: { shown: true } },
    );
    const states = events.slice(3).map((_, index) => callsOf(told(events.slice(0, index + 4)))[0]);
    expect(states.map((call) => call?.state)).toEqual([
      'input-streaming',
      'input-streaming',
      'input-available',
      'executing',
      'executing',
      'input-available',
      'output-available',
    ]);
    expect(states[4]).toMatchObject({ progress: 0.5, claim: { holder: 'tab' } });
    expect(states[5]).not.toHaveProperty('claim');
    expect(states[6]).toMatchObject({ input: { title: 'T' }, output: { shown: true } });
  });

  test('asks for an approval until somebody has decided, and takes the edited input', () => {
    const request = { type: 'tool-approval-request', approvalId: 'appr_1', expiresAt: DEADLINE, ...CALL };
    const events = story(
      ...OPENING,
      { type: 'tool-input-available', seq: 4e6, ...CALL, input: { amount: 5 } },
      { ...request, seq: 5e6, input: { amount: 5 } },
      {
        type: 'tool-approval-response',
        seq: 6e6,
        ...CALL,
        approvalId: 'appr_1',
        approved: true,
        input: { amount: 4 },
      },
    );
    expect(openApprovals(told(events.slice(0, 5)))).toMatchObject([{ id: 'appr_1', input: { amount: 5 } }]);
    expect(openApprovals(told(events))).toEqual([]);
    expect(callsOf(told(events))[0]).toMatchObject({
      state: 'input-available',
      input: { amount: 4 },
      approval: { state: 'approved' },
    });
  });

  test('keeps what this reader may do about an approval, everything unless the gateway says otherwise', () => {
    const request = { type: 'tool-approval-request', approvalId: 'appr_1', expiresAt: DEADLINE, ...CALL };
    const rights = (members: Record<string, unknown>) => {
      const [approval] = openApprovals(told(story(...OPENING, { ...request, ...members, seq: 4e6 })));
      return [approval?.mayDecide, approval?.editable];
    };
    expect(rights({})).toEqual([true, true]);
    expect(rights({ mayDecide: true, editable: false })).toEqual([true, false]);
    expect(rights({ mayDecide: false, editable: false })).toEqual([false, false]);
  });

  test('keeps the place where a call settled, whichever way', () => {
    for (const type of ['tool-output-available', 'tool-output-error', 'tool-output-denied']) {
      const events = story(
        ...OPENING,
        { type: 'tool-input-available', seq: 4e6, ...CALL, input: {} },
        { type, seq: 5e6, ...CALL },
        { type: 'step-start', seq: 6e6, step: 2 },
      );
      expect(callsOf(told(events))[0]?.endedSeq).toBe(5e6);
    }
  });

  test('keeps the work of child runs apart from what is said', () => {
    const events = story(
      ...OPENING,
      { type: 'run-start', seq: 4e6, runId: 'run_2', agent: 'b', depth: 1, parent: 'call_9' },
      { type: 'step-start', seq: 5e6, runId: 'run_2', step: 1 },
      { type: 'text-end', seq: 6e6, runId: 'run_2', id: '1.0', text: 'behind the scenes' },
    );
    expect(told(events).messages.map((message) => message.parentCallId)).toEqual([
      undefined,
      undefined,
      'call_9',
    ]);
  });

  test('ends every part that was streaming when the run ends', () => {
    const events = story(
      ...OPENING,
      { type: 'text-delta', seq: 3000001, id: '1.0', delta: 'Cut' },
      { type: 'run-finish', seq: 4e6, status: 'cancelled', reason: 'cancelled' },
    );
    const conversation = told(events);
    expect(script(conversation)).toEqual(['user: Draw!', 'assistant: Cut']);
    expect(conversation.runs.run_1).toMatchObject({ status: 'cancelled' });
  });

  test('skips an event of a type that it does not know, and moves on', () => {
    const conversation = told(story(...OPENING, { type: 'telepathy', seq: 4e6 }));
    expect(script(conversation)).toEqual(['user: Draw!', 'assistant: ']);
    expect(conversation.cursor).toBe(4e6);
  });

  test('leaves messages that did not change as they are', () => {
    const before = told(story(...OPENING));
    const after = fold(before, story({ type: 'text-end', seq: 4e6, id: '1.0', text: 'Hi' })[0] as wire.Event);
    expect(after.messages[0]).toBe(before.messages[0]);
    expect(after.messages[1]).not.toBe(before.messages[1]);
  });
});
