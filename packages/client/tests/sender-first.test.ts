import type { ModelReply } from '@toolgate/test-support';
import { describe, expect, test } from 'vitest';
import { ConflictError, type ToolgateClient, type wire } from '../src/index.js';
import { bare, gate, world } from './world.js';

const REPETITIONS = 20;
const asks: ModelReply = { calls: [{ name: 'pick_color' }] };

/** The call that a run waits with. */
async function openCall(client: ToolgateClient, runId: string): Promise<wire.ToolInputAvailableEvent> {
  for await (const event of client.runs.subscribe(runId)) {
    if (event.type === 'tool-input-available') return event;
  }
  throw new Error('the run made no call');
}

describe('whoever sent the message', () => {
  test('executes its tools, however many others would', async () => {
    const script = (_: unknown, count: number) => (count % 2 === 0 ? asks : 'Asked.');
    const { client, another } = await world(script);
    const { id } = await client.spaces.create();
    const executed: string[] = [];
    const says = (name: string) => () => {
      executed.push(name);
      return name;
    };
    const servers = ['one', 'two'].map((name) =>
      another().tools.serve(id, { tools: { pick_color: says(name) } }),
    );
    await Promise.all(servers.map((server) => server.ready()));
    client.registerTool({ ...bare('pick_color'), execute: says('sender') });
    for (let round = 0; round < REPETITIONS; round += 1) {
      const { toolResults } = await client.chat({ message: 'ask', space: id });
      expect(toolResults).toMatchObject([{ result: 'sender', local: true }]);
    }
    expect(executed).toEqual(new Array(REPETITIONS).fill('sender'));
  });

  test('is left behind when it has gone away: another executes the call', async () => {
    const { client, another } = await world([asks, 'Asked.']);
    const { id } = await client.spaces.create();
    const answered = gate<string>();
    const server = another().tools.serve(id, { tools: { pick_color: () => answered.open('other') } });
    await server.ready();
    const { runId } = await client.spaces.post(id, {
      message: 'ask',
      clientTools: [bare('pick_color')],
      executor: { holder: 'a tab that is closed now', tools: ['pick_color'] },
    });
    const call = await openCall(client, runId ?? '');
    expect(call.reserved).toMatchObject({ holder: 'a tab that is closed now' });
    await expect(client.tools.claim(call.toolCallId, { holder: 'another' })).rejects.toMatchObject({
      code: 'HELD',
    });
    expect(await answered.promise).toBe('other');
  });

  test('gives the others way at once by a release', async () => {
    const { client } = await world([asks, 'Asked.']);
    const { runId } = await client.runs.start({
      message: 'ask',
      clientTools: [bare('pick_color')],
      executor: { holder: 'sender' },
    });
    const { toolCallId } = await openCall(client, runId ?? '');
    await expect(client.tools.claim(toolCallId, { holder: 'other' })).rejects.toThrow(ConflictError);
    await client.tools.release(toolCallId, { holder: 'sender' });
    expect(await client.tools.claim(toolCallId, { holder: 'other' })).toMatchObject({ holder: 'other' });
  });

  test('is not waited for with a tool that it does not execute', async () => {
    const { client } = await world([asks, 'Asked.']);
    const { runId } = await client.runs.start({
      message: 'ask',
      clientTools: [bare('pick_color')],
      executor: { holder: 'sender', tools: ['paint_page'] },
    });
    expect(await openCall(client, runId ?? '')).not.toHaveProperty('reserved');
  });
});
