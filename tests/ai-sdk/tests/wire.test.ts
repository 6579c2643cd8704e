import { describe, expect, it } from 'vitest';
import { chunksOf } from '../src/recorder.ts';
import { useScene } from '../src/scene.ts';
import { type Sdk, sdks } from '../src/sdk.ts';
import { asBackend, clientTool } from '../src/world.ts';

const scene = useScene({ config: '[http]\nheartbeat = "20ms"\n' });
const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(scene.world.gateway.url + path, {
    method: 'POST',
    headers: { ...asBackend(scene.world.gateway), ...headers },
    body: JSON.stringify(body),
  });

describe('the stream on the wire', () => {
  it('has the headers of a UI message stream', async () => {
    scene.world.script('Hello.');
    const response = await post('/api/chat', { id: crypto.randomUUID(), message: 'hello' });
    await response.text();
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': expect.stringMatching(/^text\/event-stream/),
      'cache-control': expect.stringContaining('no-cache'),
      'x-vercel-ai-ui-message-stream': 'v1',
      'x-accel-buffering': 'no',
    });
  });

  it('is read whatever the content type of the request says', async () => {
    scene.world.script('Hello.');
    const response = await post('/api/chat', { message: 'hello' }, { 'content-type': 'text/plain' });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('Hello.');
  });

  it('has no null where a client takes none', async () => {
    scene.world.script({ reasoning: 'Hm.', calls: [{ name: 'weather' }] });
    const body = { message: 'hello', clientTools: [clientTool('weather')] };
    const chunks = chunksOf(await (await post('/api/chat?dialect=v7', body)).text());
    expect(chunks.length).toBeGreaterThan(5);
    for (const chunk of chunks) expect(Object.values(chunk)).not.toContain(null);
  });

  it.each(sdks)('lives by comments that $dialect reads over', async (sdk) => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ text: 'One two.', hold: hold.promise });
    const client = scene.open(sdk);
    const said = client.chat.sendMessage({ text: 'count' });
    await expect.poll(() => client.recorder.posts[0]?.text.match(/^:$/gm)?.length ?? 0).toBeGreaterThan(1);
    hold.resolve();
    await said;
    expect(client.words).toEqual(['One two.']);
    expect(client.chat.error).toBeUndefined();
  });

  it('is refused by an old client in a newer dialect: the strict reading of these tests can fail', async () => {
    scene.world.script('Hello.');
    const [v5] = sdks as [Sdk];
    const text = await (await post('/api/chat?dialect=v6', { message: 'hello' })).text();
    const strict = new v5.StrictTransport({ fetch: async () => new Response(text) });
    const stream = await strict.sendMessages({ chatId: 'x', messages: [], trigger: 'submit-message' });
    await expect(Array.fromAsync(stream)).rejects.toThrow();
  });

  it('knows the dialect by the body, too', async () => {
    scene.world.script('Hello.');
    const text = await (await post('/api/chat', { message: 'hello', dialect: 'v5' })).text();
    expect(chunksOf(text).find(({ type }) => type === 'finish')).not.toHaveProperty('finishReason');
    expect((await post('/api/chat?dialect=v4', { message: 'hello' })).status).toBe(400);
  });
});
