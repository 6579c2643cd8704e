import { startProxy } from '@toolgate/test-support';
import { expect, test } from 'vitest';
import type { Event } from '../src/wire.js';
import { afterwards, bare, collect, gate, valuesOf, world } from './world.js';

test('a gateway that is killed in the middle of a client tool is outlived: the result counts and the chat goes on', async () => {
  const { client, gateway } = await world([{ calls: [{ name: 'work' }] }, 'It went on.']);
  let executions = 0;
  client.registerTool({
    ...bare('work'),
    execute: async () => {
      executions += 1;
      await gateway.kill();
      // The result is ready while nobody is there to take it.
      gateway.restart().catch(() => {});
      return 'done';
    },
  });
  const chunks = await collect(client.chatStream({ message: 'work' }));
  expect(executions).toBe(1);
  expect(valuesOf(chunks, 'tool_result')).toMatchObject([{ result: 'done', local: true }]);
  expect(valuesOf(chunks, 'text').join('')).toBe('It went on.');
});

test('a stream that is cut in the middle of a sentence goes on without gap or repeat', async () => {
  const held = gate();
  const { gateway, another } = await world([{ text: 'one two three four', hold: held.promise }]);
  const proxy = await startProxy(gateway.url);
  afterwards(proxy.stop);
  const client = another({ url: proxy.url });
  const words: string[] = [];
  for await (const chunk of client.chatStream({ message: 'count' })) {
    expect(chunk.type).not.toBe('retry');
    if (chunk.type !== 'text') continue;
    if (words.push(chunk.value) === 1) {
      proxy.cut();
      held.open();
    }
  }
  expect(words.join('')).toBe('one two three four');
  expect(proxy.connections()).toBeGreaterThan(1);
});

test('a chat whose gateway restarts while the model speaks tells the whole answer', async () => {
  const speaking = gate();
  const never = new Promise(() => {});
  const { gateway, client } = await world((_, count) => {
    if (count > 0) return 'A whole answer.';
    speaking.open();
    return { text: 'A broken start', hold: never };
  });
  const heard = gate();
  const answer = (async () => {
    let text = '';
    for await (const chunk of client.chatStream({ message: 'speak' })) {
      if (chunk.type === 'text') text += chunk.value;
      if (chunk.type === 'retry') text = '';
      if (chunk.type === 'text') heard.open();
    }
    return text;
  })();
  await heard.promise;
  await gateway.restart();
  expect(await answer).toBe('A whole answer.');
});

test('a request that is cut is sent again, and the message is said once', async () => {
  const { client, gateway, another } = await world(['Hello.']);
  let cuts = 0;
  const flaky: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === 'POST' && cuts === 0) {
      cuts += 1;
      await response.body?.cancel();
      throw new TypeError('the line went dead');
    }
    return response;
  };
  const { runId, spaceId } = await another({ fetch: flaky }).runs.start('hi');
  expect(cuts).toBe(1);
  const { runs } = await client.spaces.runs(spaceId);
  expect(runs.map(({ id }) => id)).toEqual([runId]);
  expect(gateway.url).toBeTruthy();
});

test('a subscription outlives cuts and restarts: every event once, in order', async () => {
  const { client, gateway, another } = await world(['One.', 'Two.', 'Three.']);
  const { id } = await client.spaces.create();
  const proxy = await startProxy(gateway.url);
  afterwards(proxy.stop);
  const stream = another({ url: proxy.url }).spaces.subscribe(id);
  const durable: Event[] = [];
  const finished: Array<() => void> = [];
  let finishes = 0;
  stream.on('*', (event) => {
    if (['message', 'text-end', 'run-finish'].includes(event.type)) durable.push(event);
    if (event.type === 'run-finish') finished[finishes++]?.();
  });
  const nthFinish = (n: number) =>
    new Promise<void>((resolve) => {
      finished[n] = resolve;
    });
  const [first, second, third] = [nthFinish(0), nthFinish(1), nthFinish(2)];
  await client.spaces.post(id, 'a');
  await first;
  proxy.cut();
  await client.spaces.post(id, 'b');
  await second;
  await gateway.restart();
  await client.spaces.post(id, 'c');
  await third;
  stream.close();
  expect(durable.map((event) => event.type)).toEqual([
    'message',
    'text-end',
    'run-finish',
    'message',
    'text-end',
    'run-finish',
    'message',
    'text-end',
    'run-finish',
  ]);
  const seqs = durable.map(({ seq }) => seq);
  expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  expect(stream.cursor).toBeGreaterThanOrEqual(seqs.at(-1) ?? 0);
});
