import { ToolgateClient } from '@toolgate/client';
import { ChatStore, type ConversationSnapshot, callsOf, spaceStore } from '@toolgate/react';
import { startProxy } from '@toolgate/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from './world.js';

const SLOW = { name: 'slow', description: 'Takes its time.', parameters: { type: 'object' } };

interface Store<T> {
  subscribe(listener: () => void): () => void;
  snapshot(): T;
}

/** Resolves with the first snapshot for which `holds`. */
function until<T>(store: Store<T>, holds: (snapshot: T) => boolean): Promise<T> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!holds(store.snapshot())) return;
      off();
      resolve(store.snapshot());
    };
    const off = store.subscribe(look);
    queueMicrotask(look);
  });
}

const words = ({ messages }: Pick<ConversationSnapshot, 'messages'>): string[] =>
  messages.flatMap(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : part.type)));

describe('the stores, without React', () => {
  let world: World;
  let client: ToolgateClient;

  beforeAll(async () => {
    world = await startWorld();
    client = world.client;
  }, 60_000);
  afterAll(() => world?.stop());

  test('one space has one store, and its listeners share a connection', async () => {
    const proxy = await startProxy(world.gateway.url);
    const through = new ToolgateClient({ url: proxy.url, key: world.gateway.secretKey });
    const { id } = await client.spaces.create();
    const store = spaceStore(through, id);
    expect(spaceStore(through, id)).toBe(store);
    const offs = [store.subscribe(() => {}), store.subscribe(() => {})];
    await client.spaces.post(id, 'hello');
    await until(store, (now) => words(now).includes('You said hello.'));
    expect(proxy.connections()).toBe(1);
    for (const off of offs) off();
    await proxy.stop();
  });

  test('a store that nobody listens to stops, and goes on where it was', async () => {
    const { id } = await client.spaces.create();
    const store = spaceStore(client, id);
    await client.spaces.post(id, 'one');
    const before = await until(store, (now) => words(now).includes('You said one.'));
    await expect.poll(() => store.snapshot().connection, { timeout: 10_000 }).toBe('idle');
    await client.spaces.post(id, 'two');
    const after = await until(store, (now) => words(now).includes('You said two.'));
    expect(words(after)).toEqual(['one', 'You said one.', 'two', 'You said two.']);
    expect(after.messages[0]).toBe(before.messages[0]);
  });

  test('a store outlives a gateway that is killed', async () => {
    const { id } = await client.spaces.create();
    const store = spaceStore(client, id);
    const seen: string[] = [];
    const off = store.subscribe(() => {
      const { connection } = store.snapshot();
      if (seen.at(-1) !== connection) seen.push(connection);
    });
    await client.spaces.post(id, 'one');
    await until(store, (now) => words(now).includes('You said one.'));
    await world.gateway.restart();
    await client.spaces.post(id, 'two');
    const after = await until(store, (now) => words(now).includes('You said two.'));
    expect(words(after)).toEqual(['one', 'You said one.', 'two', 'You said two.']);
    expect(seen).toContain('waiting');
    expect(seen.at(-1)).toBe('live');
    off();
  });

  test('tools that are taken back and offered again at once are not claimed twice', async () => {
    const { id } = await client.spaces.create();
    const store = spaceStore(client, id);
    await client.spaces.post(id, { message: 'slow', clientTools: [SLOW] });
    await until(store, (now) => callsOf(now)[0]?.deadline !== undefined);
    let executions = 0;
    const source = {
      tools: {
        slow: () => {
          executions += 1;
          return 'done';
        },
      },
      onUnmount: 'release' as const,
    };
    store.executor.offer(source).close();
    const offer = store.executor.offer(source);
    await until(store, (now) => words(now).includes('It gave done.'));
    expect(executions).toBe(1);
    offer.close();
  });

  test('a handler hears when its call is settled by somebody else', async () => {
    const { id } = await client.spaces.create();
    const store = spaceStore(client, id);
    const aborted = new Promise<unknown>((resolve) => {
      const slow = (_: unknown, { signal }: { signal: AbortSignal }) => {
        signal.addEventListener('abort', () => resolve(signal.reason));
        return new Promise(() => {});
      };
      store.executor.offer({ tools: { slow }, onUnmount: 'release' });
    });
    await client.spaces.post(id, { message: 'slow', clientTools: [SLOW] });
    const { messages } = await until(store, (now) => callsOf(now)[0]?.state === 'executing');
    const call = callsOf({ messages, cursor: 0, runs: {} })[0];
    await client.tools.submitResult(id, { toolCallId: call?.id ?? '', result: 'from elsewhere' });
    await aborted;
    await until(store, (now) => words(now).includes('It gave from elsewhere.'));
  });

  test('a chat makes its space with the first message', async () => {
    const moves: unknown[] = [];
    const chat = new ChatStore(client, { onSpaceChange: (spaceId) => moves.push(spaceId) });
    const off = chat.subscribe(() => {});
    const sent = chat.send('hello');
    expect(chat.snapshot()).toMatchObject({ status: 'submitted', messages: [{ state: 'sending' }] });
    await sent;
    const after = await until(chat, (now) => now.status === 'ready');
    expect(words(after)).toEqual(['hello', 'You said hello.']);
    expect(moves).toEqual([after.spaceId]);
    off();
  });

  test('messages that are sent at the same time go to the same space', async () => {
    const moves: unknown[] = [];
    const chat = new ChatStore(client, { onSpaceChange: (spaceId) => moves.push(spaceId) });
    await Promise.all([chat.send('one'), chat.send('two')]);
    const after = await until(chat, (now) => now.messages.every((message) => message.state === 'done'));
    expect(words(after)).toEqual(expect.arrayContaining(['one', 'two']));
    expect(moves).toEqual([after.spaceId]);
  });

  test('a chat stops a run that waits, and says what it waits for', async () => {
    const chat = new ChatStore(client);
    chat.tools = { slow: { description: SLOW.description, parameters: SLOW.parameters } };
    const off = chat.subscribe(() => {});
    await chat.send('slow');
    await until(chat, (now) => now.status === 'waiting_tool');
    await chat.stop();
    const after = await until(chat, (now) => now.status === 'ready');
    expect(after.run?.status).toBe('cancelled');
    off();
  });

  test('a message that did not get through can be sent again and arrives once', async () => {
    let isDown = true;
    const flaky: typeof fetch = (input, init) => {
      const isMessage = String(input).endsWith('/messages');
      if (isMessage && isDown) return Promise.resolve(new Response('{"code":"DOWN"}', { status: 500 }));
      return fetch(input, init);
    };
    const shaky = new ToolgateClient({
      url: world.gateway.url,
      key: world.gateway.secretKey,
      fetch: flaky,
    });
    const chat = new ChatStore(shaky);
    const off = chat.subscribe(() => {});
    await expect(chat.send('hello')).rejects.toThrow();
    const [failed] = chat.snapshot().messages;
    expect(chat.snapshot()).toMatchObject({ status: 'error', messages: [{ state: 'failed' }] });
    isDown = false;
    await chat.resend(failed?.id ?? '');
    const after = await until(chat, (now) => now.status === 'ready');
    expect(words(after)).toEqual(['hello', 'You said hello.']);
    expect(after.messages[0]?.id).toBe(failed?.id);
    off();
  });
});
