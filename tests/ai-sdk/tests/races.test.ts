import { describe, expect, it } from 'vitest';
import { useScene } from '../src/scene.ts';
import { sdks } from '../src/sdk.ts';
import { clientTool } from '../src/world.ts';

const scene = useScene();
const body = { clientTools: [clientTool('weather')] };

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
