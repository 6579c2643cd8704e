import { describe, expect, it } from 'vitest';
import { useScene } from '../src/scene.ts';
import { sdks } from '../src/sdk.ts';
import { clientTool } from '../src/world.ts';

const scene = useScene();

describe.each(sdks)('a gateway that is killed, in $dialect', (sdk) => {
  it('breaks the stream, and tells the whole answer once it is back', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ text: 'One two three.', hold: hold.promise }, 'One two three.');
    const client = scene.open(sdk);
    const said = client.chat.sendMessage({ text: 'count' });
    await expect.poll(() => client.messages.at(-1)?.parts.some(({ text }) => text === 'One ')).toBe(true);
    await scene.world.gateway.kill();
    await said;
    expect(client.chat.status).toBe('error');
    await scene.world.gateway.restart();
    await client.chat.resumeStream();
    hold.resolve();
    expect(client.chat.status).toBe('ready');
    expect(client.words).toEqual(['One two three.']);
    expect(client.messages).toHaveLength(2);
  });

  it('still waits for a client tool once it is back', async () => {
    scene.world.script({ calls: [{ name: 'weather' }] }, 'It is sunny.');
    const answer = Promise.withResolvers<string>();
    const body = { clientTools: [clientTool('weather')] };
    const client = scene.open(sdk, { body, execute: { weather: () => answer.promise } });
    await client.chat.sendMessage({ text: 'weather?' });
    await scene.world.gateway.restart();
    answer.resolve('sunny');
    await client.rest();
    expect(client.words).toEqual(['It is sunny.']);
    expect(client.posts).toBe(2);
  });
});
