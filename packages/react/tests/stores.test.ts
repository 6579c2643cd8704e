import { ToolgateClient } from '@toolgate/client';
import { ChatStore, type ConversationSnapshot, callsOf, spaceStore } from '@toolgate/react';
import { type Script, startProxy } from '@toolgate/test-support';
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

  test('a space tells where its past ends, also where the end was deleted, or is no event of a run', async () => {
    const { id } = await client.spaces.create();
    const fresh = () => new ToolgateClient({ url: world.gateway.url, key: world.gateway.secretKey });
    const tail = () => spaceStore(fresh(), id).tail(new AbortController().signal);
    const lastSeq = async () => (await client.spaces.events(id, { limit: 500 })).events.at(-1)?.seq ?? 0;
    const run = async (text: string) => {
      const { runId } = await client.spaces.post(id, text);
      for await (const event of client.runs.subscribe(runId ?? '')) if (event.type === 'run-finish') break;
      return runId ?? '';
    };
    expect(await tail()).toBe(0);
    await run('one');
    const second = await run('two');
    const whole = await lastSeq();
    expect(await tail()).toBe(whole);
    await client.runs.delete(second);
    expect(await lastSeq()).toBeLessThan(whole);
    expect(await tail()).toBe(await lastSeq());
    await client.spaces.post(id, { message: 'noted', respond: false });
    expect(await lastSeq()).toBeGreaterThan(whole);
    expect(await tail()).toBe(await lastSeq());
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

  test('of two pages the one that sent the message executes its tool', async () => {
    const { id } = await client.spaces.create();
    const ran: string[] = [];
    const page = (name: string) => {
      const own = new ToolgateClient({ url: world.gateway.url, key: world.gateway.secretKey });
      const chat = new ChatStore(own, { spaceId: id });
      chat.tools = { slow: { ...SLOW, execute: () => ran.push(name) } };
      const store = spaceStore(own, id);
      store.executor.offer({ tools: chat.tools, onUnmount: 'release' });
      chat.subscribe(() => {});
      return { name, chat, live: until(store, (now) => now.connection === 'live') };
    };
    const pages = [page('left'), page('right')];
    await Promise.all(pages.map(({ live }) => live));
    for (let round = 0; round < 20; round += 1) {
      const { name, chat } = pages[round % 2] as (typeof pages)[number];
      await chat.send('slow');
      await until(chat, (now) => now.status === 'ready' && ran.length === round + 1);
      expect(ran.at(-1)).toBe(name);
    }
  }, 60_000);

  test('a tool that the run had to rename is executed under its own name', async () => {
    const script: Script = (_, count) => (count === 0 ? { calls: [{ name: 'client_slow' }] } : 'Done.');
    const renames = await startWorld(script, '[client_tools]\nconflict = "prefix"\n');
    try {
      const agent = { tools: [{ ...SLOW, executionType: 'basic', execution: { static: 'the agent' } }] };
      await renames.client.agents.put('desk', agent);
      const chat = new ChatStore(renames.client, { agent: 'desk' });
      chat.tools = { slow: { ...SLOW, execute: () => 'the page' } };
      chat.subscribe(() => {});
      await chat.send('go');
      const store = spaceStore(renames.client, chat.snapshot().spaceId ?? '');
      store.executor.offer({ tools: chat.tools, onUnmount: 'release' });
      const after = await until(store, (now) => words(now).includes('Done.'));
      expect(callsOf(after)).toMatchObject([{ name: 'slow', placement: 'client', output: 'the page' }]);
    } finally {
      await renames.stop();
    }
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
