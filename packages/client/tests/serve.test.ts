import { describe, expect, test, vi } from 'vitest';
import { NotFoundError, type ToolContext, ToolgateClient } from '../src/index.js';
import { afterwards, bare, gate, world } from './world.js';

const asks = { calls: [{ name: 'ask_user', args: { question: 'Which?' } }] };

async function finished(client: ToolgateClient, runId: string | null | undefined): Promise<string> {
  for await (const event of client.runs.subscribe(runId ?? '')) if (event.type === 'run-finish') break;
  return (await client.runs.get(runId ?? '')).text ?? '';
}

describe('a tool server', () => {
  test('executes the calls of its space', async () => {
    const { client, another } = await world([asks, 'Blue it is.']);
    const { id } = await client.spaces.create();
    const worker = another();
    const ends: unknown[] = [];
    worker.on('tool_end', ({ result }) => ends.push(result));
    const server = worker.tools.serve(id, {
      tools: { ask_user: ({ question }: { question: string }) => `${question} Blue.` },
    });
    await server.ready();
    const { runId } = await client.spaces.post(id, 'ask me');
    expect(await finished(client, runId)).toBe('Blue it is.');
    expect(ends).toEqual(['Which? Blue.']);
    await server.idle();
    await server.close();
    await server.done;
  });

  test('takes calls that waited before it came', async () => {
    const { client, another } = await world([asks, 'Blue it is.']);
    const { finish, runId, spaceId } = await client.chat('ask me');
    expect(finish.reason).toBe('tool-calls');
    another().tools.serve(spaceId, { tools: { ask_user: () => 'blue' } });
    expect(await finished(client, runId)).toBe('Blue it is.');
  });

  test('two of them share the work: each call is executed once', async () => {
    const calls = Array.from({ length: 6 }, () => ({ name: 'ask_user', args: { question: 'Which?' } }));
    const { client, another } = await world([{ calls }, 'All done.']);
    const { id } = await client.spaces.create();
    const executed: string[] = [];
    const tools = {
      ask_user: (_: unknown, { toolCallId }: { toolCallId: string }) => {
        executed.push(toolCallId);
        return 'x';
      },
    };
    const servers = [another().tools.serve(id, { tools }), another().tools.serve(id, { tools })];
    await Promise.all(servers.map((server) => server.ready()));
    const { runId } = await client.spaces.post(id, 'ask me');
    expect(await finished(client, runId)).toBe('All done.');
    expect(executed).toHaveLength(6);
    expect(new Set(executed).size).toBe(6);
  });

  test('gives back what it holds when it is closed, and another goes on', async () => {
    const { client, another } = await world([asks, 'Blue it is.']);
    const { id } = await client.spaces.create();
    const begun = gate();
    const lazy = another().tools.serve(id, {
      tools: {
        ask_user: () => {
          begun.open();
          return new Promise(() => {});
        },
      },
    });
    await lazy.ready();
    const { runId } = await client.spaces.post(id, 'ask me');
    await begun.promise;
    const eager = another().tools.serve(id, { tools: { ask_user: () => 'blue' } });
    await eager.ready();
    await lazy.close();
    expect(await finished(client, runId)).toBe('Blue it is.');
  });

  test('a release that comes while it is told that another holds the call is not missed', async () => {
    const { client, another } = await world([asks, 'Blue it is.']);
    const { finish, runId, spaceId } = await client.chat('ask me');
    const callId = finish.pending[0]?.toolCallId ?? '';
    await client.tools.claim(callId, { holder: 'another tab' });
    const heard = gate();
    const listening = new TransformStream<Uint8Array, Uint8Array>({
      transform: (piece, controller) => {
        controller.enqueue(piece);
        if (new TextDecoder().decode(piece).includes('tool-released')) setImmediate(heard.open);
      },
    });
    let claims = 0;
    const slow: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      const path = String(input);
      if (path.endsWith('/events')) return new Response(response.body?.pipeThrough(listening), response);
      if (path.endsWith('/claim') && ++claims === 1) {
        await server.ready();
        await client.tools.release(callId, { holder: 'another tab' });
        await heard.promise;
      }
      return response;
    };
    const server = another({ fetch: slow }).tools.serve(spaceId, { tools: { ask_user: () => 'blue' } });
    expect(await finished(client, runId)).toBe('Blue it is.');
    expect(claims).toBeGreaterThan(1);
  });

  test('keeps its claim for as long as the tool runs', async () => {
    const { client, another } = await world([asks, 'Blue it is.']);
    const { id } = await client.spaces.create();
    const kept = gate();
    let claims = 0;
    const counting: typeof fetch = (input, init) => {
      // A lease of a second is renewed every third of it: six claims are more than one lease.
      if (String(input).endsWith('/claim') && ++claims === 6) kept.open();
      return fetch(input, init);
    };
    const released: unknown[] = [];
    client.spaces.subscribe(id).on('tool-released', (event) => released.push(event));
    const server = another({ fetch: counting }).tools.serve(id, {
      leaseSeconds: 1,
      tools: { ask_user: () => kept.promise.then(() => 'blue') },
    });
    await server.ready();
    const { runId } = await client.spaces.post(id, 'ask me');
    expect(await finished(client, runId)).toBe('Blue it is.');
    expect(released).toEqual([]);
  });

  test('one that falls silent loses its call to another, and is told when it is heard again', async () => {
    const { client, another } = await world([asks, 'Blue it is.']);
    const { id } = await client.spaces.create();
    const [begun, lost] = [gate(), gate()];
    let silent = false;
    const fading: typeof fetch = (input, init) =>
      silent ? Promise.reject(new TypeError('no network')) : fetch(input, init);
    const first = another({ fetch: fading }).tools.serve(id, {
      leaseSeconds: 1,
      tools: {
        ask_user: (_: unknown, { signal }: ToolContext) => {
          signal.addEventListener('abort', () => lost.open());
          silent = true;
          begun.open();
          return new Promise(() => {});
        },
      },
    });
    await first.ready();
    const { runId } = await client.spaces.post(id, 'ask me');
    await begun.promise;
    another().tools.serve(id, { tools: { ask_user: () => 'blue' } });
    expect(await finished(client, runId)).toBe('Blue it is.');
    silent = false;
    await lost.promise;
  });

  test('uses the tools of the client’s plugins, and only those it is told', async () => {
    const { client, another } = await world([
      { calls: [{ name: 'ask_user', args: { question: 'Q' } }] },
      'Thanks.',
    ]);
    const { id } = await client.spaces.create();
    const worker = another().registerTool({ ...bare('ask_user'), execute: () => 'from the plugin' });
    const never = vi.fn();
    another().tools.serve(id, { tools: { ask_user: never }, only: ['something_else'] });
    await worker.tools.serve(id).ready();
    const { runId } = await client.spaces.post(id, 'ask me');
    expect(await finished(client, runId)).toBe('Thanks.');
    expect(never).not.toHaveBeenCalled();
  });

  test('outlives a gateway that is killed while a tool runs', async () => {
    const { client, another, gateway } = await world([asks, 'Blue it is.']);
    const { id } = await client.spaces.create();
    const server = another().tools.serve(id, {
      tools: {
        ask_user: async () => {
          await gateway.restart();
          return 'blue';
        },
      },
    });
    await server.ready();
    const { runId } = await client.spaces.post(id, 'ask me');
    expect(await finished(client, runId)).toBe('Blue it is.');
  });

  test('runs a call that needs a yes after the yes', async () => {
    const { client, another, model } = await world([
      { calls: [{ name: 'pay', args: { amount: 5 } }] },
      'Paid.',
    ]);
    await client.agents.put('payer', {
      model: { provider: 'openai', name: 'scripted', baseUrl: model.baseUrl, apiKey: 'none' },
      tools: [{ name: 'pay', description: 'Pays.', parameters: { type: 'object' }, approval: 'always' }],
    });
    const { id } = await client.spaces.create({ agent: 'payer' });
    const paid: unknown[] = [];
    await another()
      .tools.serve(id, { tools: { pay: (args: unknown) => paid.push(args) } })
      .ready();
    client.spaces.subscribe(id).on('tool-approval-request', async (event) => {
      expect(paid).toEqual([]);
      await client.approvals.decide(event.approvalId, { approved: true });
    });
    const { runId } = await client.spaces.post(id, 'pay');
    expect(await finished(client, runId)).toBe('Paid.');
    expect(paid).toEqual([{ amount: 5 }]);
  });

  test('says why it cannot listen', async () => {
    const { client } = await world([]);
    const server = client.tools.serve('space_00000000000000000000000000', { tools: {} });
    await expect(server.ready()).rejects.toThrow(NotFoundError);
  });
});

describe('by hand', () => {
  test('subscribe, execute, submit: as the wire has it', async () => {
    const { client } = await world([asks, 'Blue it is.']);
    const { id } = await client.spaces.create();
    const stream = client.spaces.subscribe(id);
    afterwards(() => stream.close());
    stream.on('tool-input-available', async (event) => {
      const { toolCallId, toolName, input, runId } = event.data;
      expect(toolName).toBe('ask_user');
      await client.tools.submitResult(id, { runId, toolCallId, result: { echo: input }, source: 'client' });
    });
    const { runId } = await client.spaces.post(id, 'ask me');
    expect(await finished(client, runId)).toBe('Blue it is.');
  });

  test('a claim keeps others out until it is released', async () => {
    const { client } = await world([asks, 'Blue it is.']);
    const { finish, runId } = await client.chat('ask me');
    const callId = finish.pending[0]?.toolCallId ?? '';
    const claimed = await client.tools.claim(callId, { holder: 'tab-1' });
    expect(claimed).toMatchObject({ toolName: 'ask_user', input: { question: 'Which?' }, holder: 'tab-1' });
    await expect(client.tools.claim(callId, { holder: 'tab-2' })).rejects.toMatchObject({
      code: 'HELD',
      problem: { claim: { holder: 'tab-1' } },
    });
    await client.tools.progress(callId, { percent: 10 });
    await client.tools.release(callId, { holder: 'tab-1' });
    await client.tools.claim(callId, { holder: 'tab-2' });
    await client.tools.submitRunResult(runId, { callId, error: 'no colour' });
    expect(await finished(client, runId)).toBe('Blue it is.');
    await expect(client.tools.claim(callId, { holder: 'tab-1' })).rejects.toMatchObject({
      status: expect.any(Number),
    });
  });

  test('definitions are checked by the gateway', async () => {
    const { client } = await world([]);
    expect(await client.tools.validate([bare('fine')])).toMatchObject({ valid: true });
    expect(
      await client.tools.validate([{ ...bare('x'), parameters: { type: 'object', $ref: '#' } }]),
    ).toMatchObject({ valid: false });
    expect((await client.tools.list()).map(({ name }) => name)).toContain('ask_user');
  });
});

describe('a user with a token', () => {
  test('chats, and sees nothing of what server tools were given', async () => {
    const { gateway } = await world([
      { calls: [{ name: 'lookup_order', args: { order_id: 'A-1001', orderId: 'A-1001' } }] },
      'It is on its way.',
    ]);
    const fetched = vi.fn(async () => gateway.token('ada'));
    const user = new ToolgateClient({ url: gateway.url, publicKey: gateway.publicKey, token: fetched });
    const { toolCalls, toolResults, text, spaceId } = await user.chat('where is my order?');
    expect(text).toBe('It is on its way.');
    expect(toolCalls).toMatchObject([{ toolName: 'lookup_order', args: {} }]);
    expect(toolResults[0]).not.toHaveProperty('result.status');
    expect(fetched).toHaveBeenCalled();
    const stranger = new ToolgateClient({
      url: gateway.url,
      publicKey: gateway.publicKey,
      token: gateway.token('eve'),
    });
    await expect(stranger.spaces.get(spaceId)).rejects.toThrow(NotFoundError);
  });
});
