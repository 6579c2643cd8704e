import { describe, expect, it } from 'vitest';
import { useScene } from '../src/scene.ts';
import { sdks } from '../src/sdk.ts';
import { clientTool, serverTool } from '../src/world.ts';

const scene = useScene();
const inParis = { city: 'Paris' };
const toolResults = () =>
  scene.world.asked
    .at(-1)
    ?.messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => String(content));

describe.each(sdks)('client tools in $dialect', (sdk) => {
  const body = { clientTools: [clientTool('weather'), clientTool('time')] };

  it.each([sdk.dialect, 'default'] as const)('runs one and goes on (dialect %s)', async (dialect) => {
    scene.world.script({ text: 'I look.', calls: [{ name: 'weather', args: inParis }] }, 'It is sunny.');
    const client = scene.open(sdk, { body, dialect, execute: { weather: () => ({ sky: 'sunny' }) } });
    await client.say('weather?');
    expect(client.ran).toMatchObject([{ tool: 'weather', input: inParis }]);
    expect(client.call('weather')).toMatchObject({ state: 'output-available', output: { sky: 'sunny' } });
    expect(client.words).toEqual(['I look.', 'It is sunny.']);
    expect(toolResults()).toEqual([expect.stringContaining('sunny')]);
    expect(client.posts).toBe(2);
  });

  it('ends the stream before the client answers', async () => {
    scene.world.script({ calls: [{ name: 'weather', args: inParis }] }, 'Done.');
    const answer = Promise.withResolvers<string>();
    const client = scene.open(sdk, { body, execute: { weather: () => answer.promise } });
    await client.chat.sendMessage({ text: 'weather?' });
    expect(client.chat.status).toBe('ready');
    expect(client.recorder.posts.map(({ ended }) => ended)).toEqual([true]);
    expect(client.recorder.posts[0]?.text).toMatch(/data: \[DONE\]\n\n$/);
    answer.resolve('sunny');
    await client.rest();
    expect(client.words).toEqual(['Done.']);
    expect(client.posts).toBe(2);
  });

  it('goes on in the same message', async () => {
    scene.world.script({ calls: [{ name: 'weather', args: inParis }] }, 'Done.');
    const client = scene.open(sdk, { body, execute: { weather: () => 'sunny' } });
    await client.say('weather?');
    expect(client.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    const posted = client.recorder.posts[1]?.body.messages?.at(-1);
    expect(posted).toMatchObject({ role: 'assistant', id: client.answer.id });
  });

  it('tells the model that one failed', async () => {
    scene.world.script({ calls: [{ name: 'weather', args: inParis }] }, 'I could not see.');
    const fail = () => {
      throw new Error('no window');
    };
    const client = scene.open(sdk, { body, execute: { weather: fail } });
    await client.say('weather?');
    expect(client.call('weather')).toMatchObject({ state: 'output-error', errorText: 'no window' });
    expect(toolResults()).toEqual([expect.stringContaining('no window')]);
    expect(client.words).toEqual(['I could not see.']);
    expect(client.posts).toBe(2);
  });

  it('takes null for an output', async () => {
    scene.world.script({ calls: [{ name: 'weather', args: inParis }] }, 'Nothing there.');
    const client = scene.open(sdk, { body, execute: { weather: () => null } });
    await client.say('weather?');
    expect(client.call('weather')).toMatchObject({ state: 'output-available', output: null });
    expect(client.posts).toBe(2);
  });

  it('runs two at once and goes on with one request', async () => {
    scene.world.script(
      {
        calls: [
          { name: 'weather', args: inParis },
          { name: 'time', args: inParis },
        ],
      },
      'Sunny noon.',
    );
    // Each waits for the other: one after the other would wait for ever.
    const [sky, clock] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const client = scene.open(sdk, {
      body,
      execute: {
        weather: async () => {
          sky.resolve();
          await clock.promise;
          return 'sunny';
        },
        time: async () => {
          clock.resolve();
          await sky.promise;
          return 'noon';
        },
      },
    });
    await client.say('weather and time?');
    expect(client.words).toEqual(['Sunny noon.']);
    expect(toolResults()).toEqual([expect.stringContaining('sunny'), expect.stringContaining('noon')]);
    expect(client.posts).toBe(2);
  });

  it('mixes them with tools of the gateway in one step', async () => {
    const agent = await scene.world.agent({ tools: [serverTool('lookup', { stock: 7 })] });
    scene.world.script(
      {
        text: 'Both.',
        calls: [
          { name: 'lookup', args: inParis },
          { name: 'weather', args: inParis },
        ],
      },
      'Seven, and sunny.',
    );
    const client = scene.open(sdk, { agent, body, execute: { weather: () => 'sunny' } });
    await client.say('stock and weather?');
    expect(client.ran.map(({ tool }) => tool)).toEqual(['weather']);
    expect(client.call('lookup')).toMatchObject({
      state: 'output-available',
      output: { stock: 7 },
      providerExecuted: true,
    });
    expect(client.call('weather')).toMatchObject({ state: 'output-available', output: 'sunny' });
    expect(client.call('weather').providerExecuted).not.toBe(true);
    expect(toolResults()).toEqual([expect.stringContaining('7'), expect.stringContaining('sunny')]);
    expect(client.words).toEqual(['Both.', 'Seven, and sunny.']);
    expect(client.posts).toBe(2);
  });

  it('tells what a slow tool of the gateway gave while the client was away', async () => {
    const child = Promise.withResolvers<void>();
    const scholar = await scene.world.agent({ instructions: 'help' });
    const agent = await scene.world.agent({
      tools: [{ ...serverTool('research', null), executionType: 'ai-agent', execution: { agent: scholar } }],
    });
    scene.world.script(
      {
        calls: [
          { name: 'research', args: { city: 'Paris' } },
          { name: 'weather', args: inParis },
        ],
      },
      { text: 'It has towers.', hold: child.promise },
      'Towers in the sun.',
    );
    const answer = Promise.withResolvers<string>();
    const client = scene.open(sdk, { agent, body, execute: { weather: () => answer.promise } });
    const said = client.chat.sendMessage({ text: 'tell me' });
    await expect.poll(() => scene.world.asked.length).toBe(2);
    child.resolve();
    await said;
    const open = () => scene.world.call<{ openCalls?: unknown[] }>('GET', `/v1/runs/${client.runId}`);
    await expect.poll(async () => JSON.stringify(await open())).not.toContain('research');
    answer.resolve('sunny');
    await client.rest();
    expect(client.call('research')).toMatchObject({ state: 'output-available' });
    expect(client.call('weather')).toMatchObject({ state: 'output-available', output: 'sunny' });
    expect(client.words).toEqual(['Towers in the sun.']);
    expect(client.posts).toBe(2);
  });

  it('runs those of an agent below the chat agent, and sends what they gave', async () => {
    const scout = await scene.world.agent({ tools: [clientTool('weather')] });
    const agent = await scene.world.agent({
      tools: [{ ...serverTool('research', null), executionType: 'ai-agent', execution: { agent: scout } }],
    });
    const weather = { calls: [{ name: 'weather', args: inParis }] };
    scene.world.script({ calls: [{ name: 'research' }] }, weather, weather, 'Below: sunny.', 'Sunny.');
    const client = scene.open(sdk, { agent, execute: { weather: () => 'sunny' } });
    await client.say('weather?');
    expect(client.ran.map(({ tool }) => tool)).toEqual(['weather', 'weather']);
    expect(client.call('research')).toMatchObject({ state: 'output-available' });
    expect(client.words).toEqual(['Sunny.']);
    expect(client.posts).toBe(3);
  });

  it('runs them step after step in one message', async () => {
    scene.world.script(
      { calls: [{ name: 'weather', args: inParis }] },
      { calls: [{ name: 'time', args: inParis }] },
      { calls: [{ name: 'weather', args: { city: 'Rome' } }] },
      'Enough.',
    );
    const client = scene.open(sdk, { body, execute: { weather: () => 'sunny', time: () => 'noon' } });
    await client.say('and on?');
    expect(client.ran.map(({ tool }) => tool)).toEqual(['weather', 'time', 'weather']);
    expect(client.words).toEqual(['Enough.']);
    expect(client.messages).toHaveLength(2);
    expect(client.posts).toBe(4);
  });

  it('gives up an open call when the user speaks', async () => {
    scene.world.script({ calls: [{ name: 'weather', args: inParis }] }, 'Never mind the weather.');
    const client = scene.open(sdk, { body });
    await client.say('weather?');
    expect(client.call('weather').state).toBe('input-available');
    await client.say('forget it');
    expect(client.words).toEqual(['Never mind the weather.']);
    expect(client.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    const roles = scene.world.asked.at(-1)?.messages.map(({ role }) => role);
    expect(roles?.slice(-3)).toEqual(['assistant', 'tool', 'user']);
    expect(client.posts).toBe(2);
  });

  it('does not run a tool of the gateway in the client', async () => {
    const agent = await scene.world.agent({ tools: [serverTool('lookup', 'seven')] });
    scene.world.script({ calls: [{ name: 'lookup', args: inParis }] }, 'Seven.');
    const client = scene.open(sdk, { agent, body, execute: { lookup: () => 'mine' } });
    await client.say('stock?');
    expect(client.ran).toEqual([]);
    expect(client.call('lookup').output).toBe('seven');
    expect(client.posts).toBe(1);
  });
});
