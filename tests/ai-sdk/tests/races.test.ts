import { describe, expect, it } from 'vitest';
import type { Client } from '../src/client.ts';
import { useScene } from '../src/scene.ts';
import { type Message, sdks } from '../src/sdk.ts';
import { clientTool } from '../src/world.ts';

const scene = useScene();
const body = { clientTools: [clientTool('weather')] };

/** The client that the gateway offers the call of the answer to first. */
async function reservedFor(client: Client): Promise<string | undefined> {
  const { events } = await scene.world.call<{
    events: Array<{ type: string; reserved?: { holder: string } }>;
  }>('GET', `/v1/runs/${client.runId}/events`);
  const call = events.find(({ type }) => type === 'tool-input-available');
  expect(call).toBeDefined();
  return call?.reserved?.holder;
}

describe.each(sdks)('two tabs in $dialect', (sdk) => {
  it('shows the loser what the winner said, as a stream', async () => {
    scene.world.script({ calls: [{ name: 'weather' }] }, 'It is as the first said.');
    const late = Promise.withResolvers<string>();
    const first = scene.open(sdk, { body });
    await first.say('weather?');
    const second = scene.open(sdk, {
      body,
      chatId: first.chat.id,
      messages: first.messages.slice(0, 1),
      execute: { weather: () => late.promise },
    });
    await second.chat.resumeStream();
    const { toolCallId } = first.call('weather');
    await first.chat.addToolOutput({ tool: 'weather', toolCallId, output: 'sunny' });
    await first.rest();
    late.resolve('rainy');
    await second.rest();

    for (const tab of [first, second]) {
      expect(tab.call('weather')).toMatchObject({ state: 'output-available', output: 'sunny' });
      expect(tab.words).toEqual(['It is as the first said.']);
      expect(tab.chat.status).toBe('ready');
      expect(tab.chat.error).toBeUndefined();
    }
    expect(first.answer.id).toBe(second.answer.id);
    expect(first.posts).toBe(2);
    expect(second.posts).toBe(1);
    expect(scene.world.asked).toHaveLength(2);
  });

  it('offers the calls first to the client that sent the message', async () => {
    scene.world.script({ calls: [{ name: 'weather' }] }, 'It is as the other said.');
    const first = scene.open(sdk, { body: { ...body, executor: { holder: 'tab-1' } } });
    await first.say('weather?');
    const { toolCallId } = first.call('weather');
    const claim = (holder: string) =>
      scene.world.call<{ until: string }>('POST', `/v1/calls/${toolCallId}/claim`, { holder });
    expect(await reservedFor(first)).toBe('tab-1');
    expect((await claim('tab-1')).until).toBeTruthy();
    await expect(claim('tab-2')).rejects.toThrow(/409 .*HELD/);

    // A claim is about executing: whoever has a result may post it, and the first one counts.
    const second = scene.open(sdk, {
      body: { ...body, executor: { holder: 'tab-2' } },
      chatId: first.chat.id,
      messages: structuredClone(first.messages),
    });
    await second.chat.addToolOutput({ tool: 'weather', toolCallId, output: 'rainy' });
    await second.rest();
    await first.chat.addToolOutput({ tool: 'weather', toolCallId, output: 'sunny' });
    await first.rest();
    for (const tab of [first, second]) {
      expect(tab.call('weather')).toMatchObject({ state: 'output-available', output: 'rainy' });
      expect(tab.words).toEqual(['It is as the other said.']);
    }
    expect(scene.world.asked).toHaveLength(2);
  });

  it('offers a call to everybody when the sender does not execute the tool, or names no executor', async () => {
    for (const executor of [{ holder: 'tab-1', tools: ['time'] }, undefined]) {
      scene.world.script({ calls: [{ name: 'weather' }] }, 'Done.');
      const first = scene.open(sdk, { body: { ...body, executor } });
      await first.say('weather?');
      expect(await reservedFor(first)).toBeUndefined();
    }
  });

  it('takes one of two answers given at once', async () => {
    scene.world.script({ calls: [{ name: 'weather' }] }, 'Settled.');
    const first = scene.open(sdk, { body });
    await first.say('weather?');
    const second = scene.open(sdk, {
      body,
      chatId: first.chat.id,
      messages: structuredClone(first.messages),
    });
    const { toolCallId } = first.call('weather');
    await Promise.all([
      first.chat.addToolOutput({ tool: 'weather', toolCallId, output: 'sunny' }),
      second.chat.addToolOutput({ tool: 'weather', toolCallId, output: 'rainy' }),
    ]);
    await Promise.all([first.rest(), second.rest()]);
    expect(first.call('weather').output).toEqual(second.call('weather').output);
    expect(first.words).toEqual(['Settled.']);
    expect(second.words).toEqual(['Settled.']);
    expect([first.posts, second.posts]).toEqual([2, 1]);
    expect(scene.world.asked).toHaveLength(2);
  });

  it('tells a client that comes too late that time ran out', async () => {
    const agent = await scene.world.agent({ tools: [{ ...clientTool('slow'), timeout: '50ms' }] });
    scene.world.script({ calls: [{ name: 'slow' }] }, 'I could not wait.');
    const late = Promise.withResolvers<string>();
    const client = scene.open(sdk, { agent, execute: { slow: () => late.promise } });
    await client.chat.sendMessage({ text: 'go' });
    const run = () => scene.world.call<{ status: string }>('GET', `/v1/runs/${client.runId}`);
    await expect.poll(async () => (await run()).status).toBe('completed');
    late.resolve('done at last');
    await client.rest();
    expect(client.call('slow').state).toBe('output-error');
    expect(client.words).toEqual(['I could not wait.']);
    expect(client.chat.error).toBeUndefined();
    expect(client.posts).toBe(2);
  });

  it('ends the answer that one tab reads when the other speaks', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ text: 'One two three.', hold: hold.promise }, 'As you say.');
    const first = scene.open(sdk);
    const said = first.chat.sendMessage({ text: 'count' });
    await expect.poll(() => first.recorder.chunks.some(({ delta }) => delta === 'One ')).toBe(true);
    const second = scene.open(sdk, { chatId: first.chat.id, messages: first.messages.slice(0, 1) });
    const spoken = second.chat.sendMessage({ text: 'stop counting' });
    await expect.poll(() => second.recorder.posts[0]?.status).toBe(200);
    hold.resolve();
    await Promise.all([said, spoken]);
    await Promise.all([first.rest(), second.rest()]);
    expect(first.chat.status).toBe('ready');
    expect(first.words).toEqual(['One two three.']);
    expect(second.words).toEqual(['As you say.']);
    expect([first.posts, second.posts]).toEqual([1, 1]);
    const past = await scene.world.call<{ messages: Message[] }>('GET', `/api/chat/${first.chat.id}`);
    const told = past.messages.map(({ parts }) => parts.flatMap(({ text }) => text ?? []).join(''));
    expect(told).toEqual(['count', 'One two three.', 'stop counting', 'As you say.']);
  });

  it('keeps the two answers apart when the model breaks off and is asked anew', async () => {
    const hold = Promise.withResolvers<void>();
    hold.promise.catch(() => {});
    scene.world.script({ text: 'One two three.', hold: hold.promise }, 'One two three.', 'As you say.');
    const first = scene.open(sdk, { strict: sdk.dialect !== 'v7' });
    const said = first.chat.sendMessage({ text: 'count' });
    await expect.poll(() => first.recorder.chunks.some(({ delta }) => delta === 'One ')).toBe(true);
    const second = scene.open(sdk, { chatId: first.chat.id, messages: first.messages.slice(0, 1) });
    const spoken = second.chat.sendMessage({ text: 'stop counting' });
    await expect.poll(() => second.recorder.posts[0]?.status).toBe(200);
    hold.reject(new Error('as the script says'));
    await Promise.all([said, spoken]);
    await Promise.all([first.rest(), second.rest()]);
    expect(first.words.at(-1)).toBe('One two three.');
    expect(first.chat.status).toBe('ready');
    expect(second.words).toEqual(['As you say.']);
    expect([first.posts, second.posts]).toEqual([1, 1]);
  });

  it('takes the same answer twice for one', async () => {
    scene.world.script({ calls: [{ name: 'weather' }] }, 'It is sunny.');
    const client = scene.open(sdk, { body, execute: { weather: () => 'sunny' } });
    await client.say('weather?');
    const again = client.recorder.posts[1];
    const response = await client.recorder.fetch(again?.url ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(again?.body),
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('It is sunny.');
    expect(scene.world.asked).toHaveLength(2);
  });

  it('takes the same message twice for one', async () => {
    scene.world.script('Hello.');
    const client = scene.open(sdk);
    await client.say('hello');
    const [first] = client.recorder.posts;
    const response = await client.recorder.fetch(first?.url ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(first?.body),
    });
    expect(await response.text()).toContain('Hello.');
    expect(scene.world.asked).toHaveLength(1);
  });
});
