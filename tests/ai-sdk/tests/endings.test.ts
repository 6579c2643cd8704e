import { describe, expect, it } from 'vitest';
import { useScene } from '../src/scene.ts';
import { sdks } from '../src/sdk.ts';
import { clientTool, serverTool } from '../src/world.ts';

const scene = useScene();
const body = { clientTools: [clientTool('weather')] };
const asksForWeather = { calls: [{ name: 'weather' }] };

describe.each(sdks)('how an answer ends in $dialect', (sdk) => {
  it('asks once more and no further when steps run out after a client tool', async () => {
    const agent = await scene.world.agent({ loop: { maxSteps: 1 } });
    scene.world.script(asksForWeather);
    const client = scene.open(sdk, { agent, body, execute: { weather: () => 'sunny' } });
    await client.say('weather?');
    expect(client.posts).toBe(2);
    expect(client.chat.status).toBe('ready');
    expect(client.call('weather').output).toBe('sunny');
  });

  it('asks no further when steps run out after a tool of the gateway', async () => {
    const agent = await scene.world.agent({ loop: { maxSteps: 1 }, tools: [serverTool('lookup', 'seven')] });
    scene.world.script({ calls: [{ name: 'lookup' }] });
    const client = scene.open(sdk, { agent });
    await client.say('stock?');
    expect(client.posts).toBe(1);
    expect(client.call('lookup').output).toBe('seven');
  });

  it('asks no further when the model has nothing to say about a result', async () => {
    scene.world.script(asksForWeather, '');
    const client = scene.open(sdk, { body, execute: { weather: () => 'sunny' } });
    await client.say('weather?');
    expect(client.posts).toBe(2);
  });

  it('asks no further when the run was cancelled while the client worked', async () => {
    scene.world.script(asksForWeather);
    const client: ReturnType<typeof scene.open> = scene.open(sdk, {
      body,
      execute: {
        weather: async () => {
          await scene.world.call('POST', `/v1/runs/${client.runId}/cancel`);
          return 'too late';
        },
      },
    });
    await client.say('weather?');
    expect(client.posts).toBe(2);
    expect(client.call('weather').state).toBe('output-error');
    expect(await scene.world.call('GET', `/v1/runs/${client.runId}`)).toMatchObject({ status: 'cancelled' });
  });

  it('asks no further when the run ends by an error after a client tool', async () => {
    scene.world.script(asksForWeather, { status: 400 });
    const client = scene.open(sdk, { body, execute: { weather: () => 'sunny' } });
    await client.say('weather?');
    expect(client.posts).toBe(2);
    expect(client.chat.status).toBe('error');
  });

  it('stops through the cancel route, in mid-stream', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ text: 'One two three.', hold: hold.promise });
    const client = scene.open(sdk);
    const said = client.chat.sendMessage({ text: 'count' });
    await expect.poll(() => client.messages.at(-1)?.role).toBe('assistant');
    await expect.poll(() => client.words).toEqual(['One ']);
    await scene.world.call('POST', `/v1/runs/${client.runId}/cancel`);
    await said;
    await client.rest();
    hold.resolve();
    expect(client.chat.status).toBe('ready');
    expect(client.words).toEqual(['One ']);
    expect(client.posts).toBe(1);
    const run = client.answer.parts.findLast(({ type }) => type === 'data-run');
    expect(run?.data?.status).toBe('cancelled');
  });

  it('goes on when the client only leaves', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ text: 'One two three.', hold: hold.promise });
    const client = scene.open(sdk);
    const said = client.chat.sendMessage({ text: 'count' });
    await expect.poll(() => client.messages.at(-1)?.role).toBe('assistant');
    await client.chat.stop();
    await said;
    hold.resolve();
    const run = () => scene.world.call<{ status: string }>('GET', `/v1/runs/${client.runId}`);
    await expect.poll(async () => (await run()).status).toBe('completed');
  });

  it('says so when the model fails', async () => {
    scene.world.script({ status: 400 });
    const client = scene.open(sdk);
    await client.say('hello');
    expect(client.chat.status).toBe('error');
    expect(client.recorder.chunks.map(({ type }) => type)).toContain('error');
    expect(client.recorder.chunks.map(({ type }) => type)).not.toContain('finish');
    expect(client.posts).toBe(1);
  });

  it('begins a step anew when the model broke off', async () => {
    const hold = Promise.withResolvers<void>();
    hold.promise.catch(() => {});
    scene.world.script({ text: 'One two', hold: hold.promise }, 'One two three.');
    // Only later releases of v7 can take words back; the first one would end here with an error.
    const client = scene.open(sdk, { strict: sdk.dialect !== 'v7' });
    const said = client.chat.sendMessage({ text: 'count' });
    await expect.poll(() => client.recorder.chunks.some(({ delta }) => delta === 'One ')).toBe(true);
    hold.reject(new Error('as the script says'));
    await said;
    expect(client.chat.status).toBe('ready');
    expect(client.words).toEqual(sdk.dialect === 'v7' ? ['One two three.'] : ['One ', 'One two three.']);
    expect(client.posts).toBe(1);
  });

  it('answers the next message after a failure', async () => {
    scene.world.script({ status: 400 }, 'Back again.');
    const client = scene.open(sdk);
    await client.say('hello');
    await client.say('still there?');
    expect(client.words).toEqual(['Back again.']);
    expect(client.chat.status).toBe('ready');
  });

  it('gives the problem when a request is wrong', async () => {
    const client = scene.open(sdk, { body: { clientTools: [{ name: 'no good', description: 'x' }] } });
    await client.say('hello');
    expect(client.chat.status).toBe('error');
    expect(client.chat.error?.message).toContain('/clientTools/0/name');
    expect(client.posts).toBe(1);
  });
});
