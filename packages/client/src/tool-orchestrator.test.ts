import { expect, test } from 'vitest';
import { ToolgateClient } from './client.js';
import { ToolOrchestrator } from './tool-orchestrator.js';

const fetch = async (): Promise<Response> => Response.json(shared({ prerequisites: ['first'] }));
const client = new ToolgateClient({ url: 'http://127.0.0.1:1', fetch });
const orchestrator = new ToolOrchestrator(client);

/** A tool as the registry returns it. */
const shared = (definition: Record<string, unknown>) => ({
  name: 'later',
  version: 1,
  definition,
  createdAt: '2030-01-01T00:00:00Z',
  updatedAt: '2030-01-01T00:00:00Z',
});

/** Whether the prerequisites are met before and after `first` has given an output. */
const valid = (tool: unknown): boolean[] =>
  [[], ['first']].map((activeTools) => orchestrator.validatePrerequisites(tool as never, { activeTools }));

test('prerequisites of a plugin and of a stored tool are the same', async () => {
  for (const prerequisites of [['first'], [{ tool: 'first', scope: 'space' }]]) {
    expect(valid({ id: 'later', prerequisites })).toEqual([false, true]);
    expect(valid(shared({ prerequisites }))).toEqual([false, true]);
  }
  expect(valid(await client.registry.get('later'))).toEqual([false, true]);
  expect(valid(await orchestrator.getToolMetadata('later'))).toEqual([false, true]);
  for (const none of [{}, { prerequisites: [] }, { prerequisites: null }]) {
    expect(valid({ id: 'later', ...none })).toEqual([true, true]);
    expect(valid(shared(none))).toEqual([true, true]);
  }
});

test('prerequisites that cannot be read are not met', () => {
  for (const prerequisites of ['first', { tool: 'first' }, 1, [null], [1], [{}], [['first']]]) {
    expect(valid({ id: 'later', prerequisites })).toEqual([false, false]);
    expect(valid(shared({ prerequisites }))).toEqual([false, false]);
  }
  expect(valid({ ...shared({}), prerequisites: ['second'] })).toEqual([false, false]);
  for (const none of [undefined, null, 'later', {}, client.registry.get('later'), { definition: null }])
    expect(valid(none)).toEqual([false, false]);
});
