import { describe, expect, it } from 'vitest';
import { useScene } from '../src/scene.ts';
import { sdks } from '../src/sdk.ts';
import { clientTool, serverTool } from '../src/world.ts';

const scene = useScene({ config: '[client_tools]\nconflict = "prefix"\n' });

describe.each(sdks)("a client tool with the name of one of the agent's in $dialect", (sdk) => {
  it('is called by its own name', async () => {
    const agent = await scene.world.agent({ tools: [serverTool('lookup', 'the agent knows')] });
    scene.world.script({ calls: [{ name: 'lookup' }, { name: 'client_lookup' }] }, 'Both.');
    const client = scene.open(sdk, {
      agent,
      body: { clientTools: [clientTool('lookup')] },
      execute: { lookup: () => 'the page knows' },
    });
    await client.say('look it up');
    expect(client.ran.map(({ tool }) => tool)).toEqual(['lookup']);
    expect(client.calls('lookup').map(({ output, providerExecuted }) => [output, providerExecuted])).toEqual([
      ['the agent knows', true],
      ['the page knows', undefined],
    ]);
    const told = scene.world.asked.at(-1)?.messages.filter(({ role }) => role === 'tool');
    expect(told?.map(({ content }) => String(content))).toEqual([
      expect.stringContaining('the agent knows'),
      expect.stringContaining('the page knows'),
    ]);
    expect(client.words).toEqual(['Both.']);
    expect(client.posts).toBe(2);
  });
});
