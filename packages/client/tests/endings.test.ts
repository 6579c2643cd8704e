import { expect, test } from 'vitest';
import type { ChatResult, Chunk } from '../src/index.js';
import { bare, world } from './world.js';

const ROUNDS = 10;

test('a hook that fails at the end names its plugin, after the stream has told the end', async () => {
  const { client } = await world(['Hello.']);
  const told: ChatResult[] = [];
  client.on('finish', (result) => told.push(result));
  client.use({
    name: 'diary',
    version: '1.0.0',
    hooks: { afterResponse: () => Promise.reject(new Error('no paper')) },
  });
  const chunks: Chunk[] = [];
  const read = async (): Promise<void> => {
    for await (const chunk of client.chatStream({ message: 'hi' })) chunks.push(chunk);
  };
  await expect(read()).rejects.toThrow('plugin "diary": its hook afterResponse failed: no paper');
  expect(chunks.at(-1)).toMatchObject({ type: 'finish', value: { reason: 'stop' } });
  expect(told).toMatchObject([{ text: 'Hello.' }]);
});

test('a call that was answered is not released', async () => {
  const asked: string[] = [];
  const watching: typeof fetch = (input, init) => {
    if (init?.method === 'POST') asked.push(String(input).replace(/^.*\//, ''));
    return fetch(input, init);
  };
  const script = (_: unknown, count: number) =>
    count % 2 === 0 ? { calls: [{ name: 'left' }, { name: 'right' }] } : 'Done.';
  const { client } = await world(script, { fetch: watching });
  for (const name of ['left', 'right']) client.registerTool({ ...bare(name), execute: () => name });
  for (let round = 0; round < ROUNDS; round += 1) await client.chat('do it');
  const count = (what: string): number => asked.filter((name) => name === what).length;
  expect([count('claim'), count('tool-results'), count('release')]).toEqual([2 * ROUNDS, 2 * ROUNDS, 0]);
});
