import { expect, test } from 'vitest';
import { formatBytes, formatCount, formatDuration, formatRelative, shortId } from './format.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');

test.each([
  [0.4, '< 1 ms'],
  [340, '340 ms'],
  [2_400, '2.4 s'],
  [45_000, '45 s'],
  [185_000, '3 min 5 s'],
  [120_000, '2 min'],
  [7_800_000, '2 h 10 min'],
  [-1, '–'],
])('a duration of %d ms is %s', (ms, words) => expect(formatDuration(ms)).toBe(words));

test.each([
  ['2026-01-01T11:59:58Z', 'just now'],
  ['2026-01-01T11:55:00Z', '5 min ago'],
  ['2026-01-01T14:00:00Z', 'in 2 h'],
  ['2025-12-30T12:00:00Z', '2 d ago'],
  ['no time', 'no time'],
])('%s is %s', (time, words) => expect(formatRelative(time, NOW)).toBe(words));

test('counts and sizes are short', () => {
  expect([999, 9_999, 12_300, 4_100_000].map(formatCount)).toEqual(['999', '9,999', '12.3k', '4.1M']);
  expect([512, 3_400, 12_000_000].map(formatBytes)).toEqual(['512 B', '3.4 kB', '12 MB']);
});

test('an id keeps its prefix and its end', () => {
  expect(shortId('run_01m7pfvnyde14s6vw175416vtx')).toBe('run_…416vtx');
  expect(shortId('run_1')).toBe('run_1');
});
