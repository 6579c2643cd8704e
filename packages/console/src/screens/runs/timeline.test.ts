import type { wire } from '@toolgate/client';
import { expect, test } from 'vitest';
import { timeScale } from './time-scale.ts';
import { timelineOf } from './timeline.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const CALL = { toolCallId: 'call_1', toolName: 'send_email', placement: 'server' };

/** Events with their times in seconds after the start. */
function story(...events: Array<[number, Record<string, unknown>]>): wire.Event[] {
  return events.map(([at, event], index) => {
    const time = new Date(START + at * 1000).toISOString();
    return {
      seq: (index + 1) * 1e6,
      runId: 'run_1',
      spaceId: 'space_1',
      time,
      ...event,
    } as unknown as wire.Event;
  });
}

const APPROVED = story(
  [0, { type: 'run-start' }],
  [0, { type: 'step-start', step: 1 }],
  [2, { type: 'tool-input-available', ...CALL }],
  [2, { type: 'tool-approval-request', ...CALL }],
  [2, { type: 'step-finish', step: 1, usage: { inputTokens: 5, outputTokens: 7 }, reason: 'tool-calls' }],
  [3602, { type: 'tool-approval-response', ...CALL, approved: true }],
  [3604, { type: 'tool-output-available', ...CALL }],
  [3605, { type: 'run-finish', status: 'completed' }],
);

test('waiting is told apart from work', () => {
  const [step] = timelineOf(APPROVED).steps;
  expect(step?.usage).toEqual({ inputTokens: 5, outputTokens: 7 });
  const spans = step?.calls[0]?.spans.map(({ kind, from, to }) => [kind, from - START, (to ?? 0) - START]);
  expect(spans).toEqual([
    ['call', 2000, 2000],
    ['wait', 2000, 3_602_000],
    ['call', 3_602_000, 3_604_000],
  ]);
  expect(step?.calls[0]?.outcome).toBe('output');
});

test('a call that waits says for what, until it goes on', () => {
  const waiting = timelineOf(APPROVED.slice(0, 5)).steps[0]?.calls[0];
  expect(waiting?.waitsFor).toBe('an approval');
  expect(waiting?.spans.at(-1)?.to).toBeUndefined();
  expect(timelineOf(APPROVED).steps[0]?.calls[0]?.waitsFor).toBeUndefined();
});

test('an hour of waiting does not hide seconds of work', () => {
  const scale = timeScale(timelineOf(APPROVED), START);
  expect(scale.place(START)).toBe(0);
  expect(scale.place(START + 3_605_000)).toBe(1);
  expect(scale.place(START + 2000)).toBeGreaterThan(0.2);
  expect(scale.breaks).toHaveLength(1);
  const places = [0, 1, 2, 100, 3000, 3602, 3603, 3605].map((at) => scale.place(START + at * 1000));
  expect(places).toEqual([...places].sort((a, b) => a - b));
});

test('a run that has just begun has a scale', () => {
  const scale = timeScale(timelineOf(APPROVED.slice(0, 1)), START);
  expect(scale.place(START)).toBe(0);
  expect(scale.place(START + 10)).toBe(1);
});
