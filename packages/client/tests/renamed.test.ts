import { describe, expect, test } from 'vitest';
import type { ToolgateClient } from '../src/index.js';
import { bare, collect, gate, valuesOf, world } from './world.js';

const PREFIX = '[client_tools]\nconflict = "prefix"\n';
const agent = {
  instructions: 'help',
  tools: [{ ...bare('lookup'), executionType: 'basic', execution: { static: 'the agent knows' } }],
};
const script = [{ calls: [{ name: 'lookup' }, { name: 'client_lookup' }] }, 'Both.'];

async function deskWith(): Promise<{ client: ToolgateClient; another: () => ToolgateClient }> {
  const made = await world(script, { agent: 'desk' }, PREFIX);
  await made.client.agents.put('desk', agent);
  return made;
}

describe('a tool that the run had to rename', () => {
  test('is executed by whoever registered it, under its own name', async () => {
    const { client } = await deskWith();
    client.registerTool({ ...bare('lookup'), execute: (_, { toolName }) => `${toolName} of the client` });
    const chunks = await collect(client.chatStream({ message: 'look it up' }));
    expect(valuesOf(chunks, 'tool_call')).toMatchObject([
      { toolName: 'lookup', placement: 'server' },
      { toolName: 'lookup', placement: 'client' },
    ]);
    expect(valuesOf(chunks, 'tool_result').map(({ result, local }) => [result, local])).toEqual(
      expect.arrayContaining([
        ['the agent knows', false],
        ['lookup of the client', true],
      ]),
    );
  });

  test('is executed by a tool server, also one that comes later', async () => {
    const { client, another } = await deskWith();
    const { spaceId, runId } = await client.runs.start({
      message: 'look it up',
      agent: 'desk',
      clientTools: [bare('lookup')],
    });
    for await (const event of client.runs.subscribe(runId ?? ''))
      if (event.type === 'run-status' && event.status === 'waiting_tool') break;
    const { pending } = await client.runs.get(runId ?? '');
    expect(pending.calls).toMatchObject([{ toolName: 'client_lookup', givenName: 'lookup' }]);
    const ran = gate<string>();
    another().tools.serve(spaceId, {
      tools: { lookup: (_: unknown, { toolName }: { toolName: string }) => ran.open(toolName) },
    });
    expect(await ran.promise).toBe('lookup');
  });
});
