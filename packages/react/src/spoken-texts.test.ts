import { expect, test } from 'vitest';
import { type Conversation, EMPTY_CONVERSATION } from './conversation.js';
import type { ToolCall } from './message.js';
import { SpokenTexts } from './spoken-texts.js';

function conversation(call: Partial<ToolCall>): Conversation {
  const whole: ToolCall = {
    id: 'call_1',
    runId: 'run_1',
    spaceId: 'space_1',
    name: 'my_tool',
    placement: 'client',
    state: 'executing',
    inputText: '',
    ...call,
  };
  const part = { type: 'tool-call', id: '1.0', call: whole } as const;
  const message = { id: 'm', role: 'assistant', state: 'done', time: '', parts: [part] } as const;
  return { ...EMPTY_CONVERSATION, messages: [message] };
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
