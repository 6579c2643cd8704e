import { startProxy } from '@toolgate/test-support';
import { describe, expect, it } from 'vitest';
import type { Client } from '../src/client.ts';
import { chunksOf } from '../src/recorder.ts';
import { useScene } from '../src/scene.ts';
import { type Message, type Sdk, sdks } from '../src/sdk.ts';
import { asBackend, clientTool, serverTool } from '../src/world.ts';

const scene = useScene();
const body = { clientTools: [clientTool('weather')] };

/** A page that was loaded again: it has the user's words, and no more. */
function reloaded(sdk: Sdk, before: Client, options: object = {}): Client {
  return scene.open(sdk, {
    chatId: before.chat.id,
    messages: before.messages.filter(({ role }) => role === 'user'),
    ...options,
  });
}

/** Says something whose answer stops after its first word, until `go`. */
async function halfway(client: Client): Promise<{ go(): void; said: Promise<void> }> {
  const hold = Promise.withResolvers<void>();
  scene.world.script({ text: 'One two three.', hold: hold.promise });
  const said = client.chat.sendMessage({ text: 'count' });
  await expect.poll(() => client.messages.at(-1)?.role).toBe('assistant');
  await expect.poll(() => client.words).toEqual(['One ']);
  return { go: hold.resolve, said };
}

describe.each(sdks)('coming back in $dialect', (sdk) => {
  it('finds the whole answer while it streams', async () => {
    const before = scene.open(sdk);
    const { go, said } = await halfway(before);
    await before.chat.stop();
    await said;
    const after = reloaded(sdk, before);
    const resumed = after.chat.resumeStream();
    await expect.poll(() => after.messages.at(-1)?.role).toBe('assistant');
    await expect.poll(() => after.words).toEqual(['One ']);
    go();
    await resumed;
    expect(after.words).toEqual(['One two three.']);
    expect(after.answer.id).toBe(before.answer.id);
    expect(after.recorder.gets).toHaveLength(1);
    expect(after.posts).toBe(0);
  });

  it('finds the call that waits for it, and answers', async () => {
    scene.world.script({ text: 'I look.', calls: [{ name: 'weather' }] }, 'It is sunny.');
    const before = scene.open(sdk, { body });
    await before.say('weather?');
    const after = reloaded(sdk, before, { body, execute: { weather: () => 'sunny' } });
    await after.chat.resumeStream();
    await after.rest();
    expect(after.ran).toMatchObject([{ tool: 'weather' }]);
    expect(after.words).toEqual(['I look.', 'It is sunny.']);
    expect(after.answer.id).toBe(before.answer.id);
    expect(after.messages).toHaveLength(2);
    expect(after.posts).toBe(1);
  });

  it('finds all steps of the answer so far', async () => {
    const agent = await scene.world.agent({ tools: [serverTool('lookup', 'seven')] });
    scene.world.script(
      { text: 'First.', calls: [{ name: 'lookup' }] },
      { text: 'Second.', calls: [{ name: 'weather' }] },
      'Third.',
    );
    const before = scene.open(sdk, { agent, body });
    await before.say('go');
    const after = reloaded(sdk, before, { agent, body, execute: { weather: () => 'sunny' } });
    await after.chat.resumeStream();
    await after.rest();
    expect(after.words).toEqual(['First.', 'Second.', 'Third.']);
    expect(after.call('lookup').output).toBe('seven');
  });

  it('does not run a tool again that was answered before', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ calls: [{ name: 'weather' }] }, { text: 'It is sunny.', hold: hold.promise });
    const before = scene.open(sdk, { body, execute: { weather: () => 'sunny' } });
    const said = before.chat.sendMessage({ text: 'weather?' });
    await expect.poll(() => before.recorder.posts[1]?.text ?? '').toContain('It ');
    await before.chat.stop();
    await said;
    const after = reloaded(sdk, before, { body, execute: { weather: () => 'rainy' } });
    const resumed = after.chat.resumeStream();
    await expect.poll(() => after.recorder.gets[0]?.text ?? '').toContain('It ');
    hold.resolve();
    await resumed;
    await after.rest();
    expect(after.ran).toEqual([]);
    expect(after.call('weather')).toMatchObject({ state: 'output-available', output: 'sunny' });
    expect(after.words).toEqual(['It is sunny.']);
    expect(after.posts).toBe(0);
  });

  it('begins with what the gateway remembers', async () => {
    scene.world.script('One.', 'Two.');
    const before = scene.open(sdk);
    await before.say('first');
    await before.say('second');
    const past = await scene.world.call<{ messages: Message[] }>('GET', `/api/chat/${before.chat.id}`);
    const after = scene.open(sdk, { chatId: before.chat.id, messages: past.messages });
    await after.chat.resumeStream();
    scene.world.script('Three.');
    await after.say('third');
    const told = after.messages.map(({ parts }) => parts.flatMap(({ text }) => text ?? []).join(''));
    expect(told).toEqual(['first', 'One.', 'second', 'Two.', 'third', 'Three.']);
    expect(after.messages[1]?.id).toBe(before.messages[1]?.id);
  });

  it('finds nothing when nothing is under way', async () => {
    scene.world.script('Done.');
    const before = scene.open(sdk);
    await before.say('hello');
    const after = reloaded(sdk, before);
    await after.chat.resumeStream();
    expect(after.recorder.gets.map(({ status }) => status)).toEqual([204]);
    expect(after.chat.status).toBe('ready');
    const never = scene.open(sdk);
    await never.chat.resumeStream();
    expect(never.recorder.gets.map(({ status }) => status)).toEqual([204]);
  });

  it('does not double text when the connection broke', async () => {
    const proxy = await startProxy(scene.world.gateway.url);
    const client = scene.open(sdk, { url: proxy.url });
    const { go, said } = await halfway(client);
    proxy.cut();
    await said;
    expect(client.chat.status).toBe('error');
    const resumed = client.chat.resumeStream();
    await expect.poll(() => client.recorder.gets[0]?.text).toContain('One');
    go();
    await resumed;
    await proxy.stop();
    expect(client.chat.status).toBe('ready');
    expect(client.words).toEqual(['One two three.']);
    expect(client.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  });
});

describe('coming back with a cursor', () => {
  const [sdk] = sdks.slice(-1) as [Sdk];
  /** Resolves when the answer has begun. */
  const begin = (client: Client, query: string, headers: Record<string, string> = {}) => {
    const path = `/api/chat/${client.chat.id}/stream?dialect=v7${query}`;
    return fetch(scene.world.gateway.url + path, {
      headers: { ...asBackend(scene.world.gateway), ...headers },
    });
  };
  const read = async (client: Client, query: string, headers: Record<string, string> = {}) => {
    const response = await begin(client, query, headers);
    return { status: response.status, text: await response.text() };
  };
  const textOf = (text: string) =>
    chunksOf(text)
      .filter(({ type }) => type === 'text-delta')
      .map(({ delta }) => delta)
      .join('');
  const cursorsOf = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id as string);
  /** What was read up to and with a cursor. */
  const upTo = (text: string, cursor: string) => {
    const at = text.indexOf(`id: ${cursor}\n`);
    return text.slice(0, text.indexOf('\n\n', at) + 2);
  };

  it('tells the rest and nothing twice, from every cursor of a stream that goes on', async () => {
    const client = scene.open(sdk);
    const { go, said } = await halfway(client);
    const [seen] = client.recorder.posts;
    const cursors = cursorsOf(seen?.text ?? '');
    expect(cursors.length).toBeGreaterThan(2);
    const rests = cursors.map(async (cursor) => ({
      cursor,
      rest: await read(client, '', { 'last-event-id': cursor }),
    }));
    go();
    await said;
    for (const { cursor, rest } of await Promise.all(rests)) {
      expect(textOf(upTo(seen?.text ?? '', cursor)) + textOf(rest.text), `after ${cursor}`).toBe(
        'One two three.',
      );
    }
  });

  it('tells the rest of an answer that has ended, and 204 when all was read', async () => {
    scene.world.script('One two three.');
    const client = scene.open(sdk);
    await client.say('count');
    const whole = client.recorder.posts[0]?.text ?? '';
    const cursors = cursorsOf(whole);
    for (const cursor of cursors.slice(0, -1)) {
      const rest = await read(client, `&after=${cursor}`);
      expect(textOf(upTo(whole, cursor)) + textOf(rest.text), `after ${cursor}`).toBe('One two three.');
      expect(chunksOf(rest.text).at(-1)?.type).toBe('finish');
    }
    expect((await read(client, '', { 'last-event-id': cursors.at(-1) as string })).status).toBe(204);
  });

  it('counts chunks for startIndex', async () => {
    const client = scene.open(sdk);
    const { go, said } = await halfway(client);
    const seen = client.recorder.posts[0]?.text ?? '';
    const count = chunksOf(seen).length;
    const begun = await begin(client, `&startIndex=${count}`);
    go();
    await said;
    const rest = await begun.text();
    expect(textOf(seen) + textOf(rest)).toBe('One two three.');
    expect(chunksOf(rest)[0]?.type).toBe('text-delta');
    expect(client.recorder.posts[0]?.headers?.get('x-workflow-run-id')).toBe(client.runId);
    // Whoever has read more than what an answer always begins with cannot be told the rest by a count any more.
    expect((await read(client, `&startIndex=${count}`)).status).toBe(410);
    const byRun = await fetch(`${scene.world.gateway.url}/api/chat/${client.runId}/stream?startIndex=0`, {
      headers: asBackend(scene.world.gateway),
    });
    expect(textOf(await byRun.text())).toBe('One two three.');
  });

  it('refuses a cursor that is none', async () => {
    const client = scene.open(sdk);
    scene.world.script('Hello.');
    await client.say('hello');
    expect((await read(client, '&after=nonsense')).status).toBe(400);
    expect((await read(client, '&startIndex=-x')).status).toBe(400);
  });
});
