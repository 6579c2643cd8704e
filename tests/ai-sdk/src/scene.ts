import type { GatewayOptions } from '@toolgate/test-support';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { Client, type ClientOptions } from './client.ts';
import { chunksOf, type Exchange } from './recorder.ts';
import type { Sdk } from './sdk.ts';
import { startWorld, type World } from './world.ts';

/** A world for the tests of one file. */
export interface Scene {
  readonly world: World;
  /** A client; all that it read is checked after the test. */
  open(sdk: Sdk, options?: ClientOptions): Client;
}

/**
 * Starts a world before the tests of a file and stops it after them. After each test, everything that a client
 * read in its own dialect goes once more through the first release of that major: it refuses every chunk and every
 * member that it does not know. Every step that a response finishes was started in it.
 */
export function useScene(options: GatewayOptions = {}): Scene {
  let world: World | undefined;
  let opened: Array<{ sdk: Sdk; options: ClientOptions; client: Client }> = [];
  beforeAll(async () => {
    world = await startWorld(options);
  });
  afterEach(async () => {
    const mine = opened;
    opened = [];
    for (const { client } of mine) await client.chat.stop();
    for (const { client } of mine) for (const exchange of client.recorder.exchanges) checkSteps(exchange);
    for (const { sdk, options, client } of mine) {
      const own = options.dialect === undefined || options.dialect === sdk.dialect;
      if (!own || options.strict === false) continue;
      for (const exchange of client.recorder.exchanges) await readStrictly(sdk, exchange);
    }
  });
  afterAll(() => world?.stop());
  return {
    get world() {
      if (!world) throw new Error('the world starts with the tests');
      return world;
    },
    open(sdk, options = {}) {
      const client = new Client(sdk, this.world, options);
      opened.push({ sdk, options, client });
      return client;
    },
  };
}

/** A response from the middle of an answer finishes what an earlier one has started. */
function checkSteps(exchange: Exchange): void {
  if (exchange.status !== 200 || exchange.url.includes('startIndex')) return;
  let open = 0;
  for (const { type } of chunksOf(exchange.text)) {
    if (type === 'start-step') open += 1;
    if (type === 'finish-step') open -= 1;
    if (open < 0 || open > 1) throw new Error(`${type} out of turn in\n${exchange.text}`);
  }
}

async function readStrictly(sdk: Sdk, exchange: Exchange): Promise<void> {
  if (exchange.status !== 200) return;
  const transport = new sdk.StrictTransport({ fetch: async () => new Response(exchange.text) });
  const stream = await transport.sendMessages({
    chatId: 'again',
    messages: [],
    trigger: 'submit-message',
    abortSignal: undefined,
  });
  let count = 0;
  try {
    for await (const _chunk of stream) count += 1;
  } catch {
    throw new Error(`the first ${sdk.dialect} refuses chunk ${count} of\n${exchange.text}`);
  }
  expect(count).toBeGreaterThan(0);
}
