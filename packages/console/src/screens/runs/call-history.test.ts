import type { wire } from '@toolgate/client';
import { expect, test } from 'vitest';
import { callHistory } from './call-history.ts';

const EVENTS = [
  { type: 'step-start', step: 1 },
  { type: 'tool-input-available', toolCallId: 'call_1', toolName: 'send_email' },
  { type: 'tool-approval-request', toolCallId: 'call_1', toolName: 'send_email' },
  {
    type: 'tool-input-available',
    toolCallId: 'call_2',
    toolName: 'pick_color',
    deadline: 'later',
    offeredTo: 'ent_2',
  },
  {
    type: 'tool-executing',
    toolCallId: 'call_2',
    toolName: 'pick_color',
    claim: { holder: 'page_1', until: 'later', by: 'ent_2' },
  },
  {
    type: 'tool-approval-response',
    toolCallId: 'call_1',
    approved: true,
    input: {},
    by: 'ent_1',
    reason: 'fine',
  },
  { type: 'tool-output-available', toolCallId: 'call_1' },
].map((event, seq) => ({ ...event, seq, time: '2026-01-01T00:00:00Z' })) as unknown as wire.Event[];

function told(callId: string): string[] {
  return callHistory(EVENTS, callId).map(({ words, by, note }) =>
    [words, by, note].filter(Boolean).join(' '),
  );
}

test('says who decided on a call, and with what', () => {
  expect(told('call_1')).toEqual([
    'Asked for by the model',
    'Approval asked for',
    'Approved with a changed input ent_1 fine',
    'Output',
  ]);
});

test('says whom a call was offered to, and who took it', () => {
  expect(told('call_2')).toEqual(['Offered to clients ent_2', 'Claimed ent_2 page_1']);
});
