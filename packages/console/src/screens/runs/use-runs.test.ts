import type { RunRow } from '@toolgate/client';
import { expect, test } from 'vitest';
import { merged, type RunFilter } from './use-runs.ts';

const ALL: RunFilter = { text: '', agent: '', user: '', status: '', hours: 0, children: false };

function run(id: string, change: Partial<RunRow> = {}): RunRow {
  const time = '2026-01-01T00:00:00Z';
  return {
    id,
    spaceId: 's',
    agent: 'a',
    revision: 1,
    status: 'running',
    createdAt: time,
    updatedAt: time,
    seq: 1,
    ...change,
  };
}

function ids(filter: RunFilter, change: RunRow): string[] {
  const data = { pages: [{ runs: [run('run_2'), run('run_1')] }] };
  return merged(data, change, filter).pages.flatMap(({ runs }) =>
    runs.map(({ id, status }) => `${id} ${status}`),
  );
}

test('a known run changes in its place', () => {
  expect(ids(ALL, run('run_1', { status: 'completed' }))).toEqual(['run_2 running', 'run_1 completed']);
});

test('a new run comes on top', () => {
  expect(ids(ALL, run('run_3'))[0]).toBe('run_3 running');
});

test.each([
  [{ ...ALL, status: 'failed' }, run('run_3')],
  [{ ...ALL, agent: 'b' }, run('run_3')],
  [{ ...ALL, text: 'tea' }, run('run_3', { title: 'coffee' })],
  [ALL, run('run_3', { parent: 'call_1' })],
])('a new run that does not fit the filter stays out', (filter, change) => {
  expect(ids(filter, change)).toHaveLength(2);
});
