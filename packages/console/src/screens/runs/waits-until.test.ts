import type { ToolCall } from '@toolgate/react';
import { expect, test } from 'vitest';
import { waitsUntil } from './waits-until.ts';

const call = (change: Partial<ToolCall>): ToolCall => ({ state: 'executing', ...change }) as ToolCall;

test('the first of all limits counts', () => {
  const calls = [
    call({ state: 'input-available', deadline: '2026-01-01T12:00:00Z' }),
    call({ pause: { until: '2026-01-01T11:00:00Z', signal: false } }),
  ];
  expect(waitsUntil(calls)).toBe('2026-01-01T11:00:00Z');
});

test('a call that has ended waits for nothing', () => {
  expect(waitsUntil([call({ state: 'output-available', deadline: '2026-01-01T12:00:00Z' })])).toBeUndefined();
});
