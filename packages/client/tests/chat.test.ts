import { describe, expect, test, vi } from 'vitest';
import {
  AbortedError,
  AccessError,
  type ChatMessage,
  type Chunk,
  ConflictError,
  type ToolgatePlugin,
  ValidationError,
} from '../src/index.js';
import { bare, collect, gate, valuesOf, world } from './world.js';

const timePlugin = (): ToolgatePlugin => ({
  name: 'time',
  version: '1.0.0',
  tools: [
    {
      name: 'get_time',
      description: 'Says the time.',
      parameters: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
    },
  ],
  executors: { get_time: async ({ zone }: { zone: string }) => ({ zone, time: 'noon' }) },
});
const asksForTime = { calls: [{ name: 'get_time', args: { zone: 'UTC' } }] };

describe('a client and its plugins', () => {
  test('use, hasPlugin, getPluginNames, unuse', async () => {
    const { client } = await world([]);
    const onRegister = vi.fn();
    const onUnregister = vi.fn();
    const second = { name: 'second', version: '1.0.0', hooks: { onRegister, onUnregister } };
    expect(client.use(timePlugin()).use(second)).toBe(client);
    expect(client.getPluginNames()).toEqual(['time', 'second']);
    expect(client.hasPlugin('time')).toBe(true);
    await client.ready();
    expect(onRegister).toHaveBeenCalledWith(client);
    await client.unuse('second');
    expect(onUnregister).toHaveBeenCalledOnce();
    expect(client.hasPlugin('second')).toBe(false);
    await expect(client.unuse('second')).rejects.toThrow(/there is no plugin named "second"/);
  });

  test('the tools of plugins travel with the request, and nothing without plugins', async () => {
    const { client, model } = await world(['Hello.']);
    await client.chat('hi');
    expect(model.requests[0]?.tools?.map((tool) => tool.function.name)).not.toContain('get_time');
    await client.use(timePlugin()).chat('hi');
    expect(model.requests[1]?.tools?.map((tool) => tool.function.name)).toContain('get_time');
  });

  test('a chat waits for a plugin that takes its time to start, and its tools are read after', async () => {
    const { client, model } = await world(['Hello.']);
    const slow = gate();
    const plugin: ToolgatePlugin = { name: 'slow', version: '1.0.0', tools: [] };
    plugin.hooks = {
      onRegister: async () => {
        await slow.promise;
        plugin.tools?.push({ ...bare('late'), execute: () => 'there' });
      },
    };
    const chat = client.use(plugin).chat('hi');
    expect(client.getClientToolDefinitions()).toEqual([]);
    slow.open();
    await chat;
    expect(model.requests[0]?.tools?.map((tool) => tool.function.name)).toContain('late');
  });

  test('a plugin that does not start is told once and is gone', async () => {
    const { client } = await world(['Hello.']);
    const hooks = { onRegister: () => Promise.reject(new Error('no cable')) };
    client.use({ name: 'robot', version: '1.0.0', hooks });
    await expect(client.chat('hi')).rejects.toMatchObject({
      code: 'PLUGIN_FAILED',
      message: /"robot".*no cable/,
    });
    expect(client.hasPlugin('robot')).toBe(false);
    expect((await client.chat('hi')).text).toBe('Hello.');
  });

  test('a plugin for another gateway is refused with both versions', async () => {
    const { client } = await world(['Hello.']);
    client.use({ name: 'new', version: '1.0.0', engine: '>=99' });
    await expect(client.ready()).rejects.toMatchObject({
      code: 'PLUGIN_ENGINE',
      message: />=99, this one is 0\./,
    });
    client.use({ name: 'fit', version: '1.0.0', engine: '>=0.1' });
    await client.ready();
    expect(client.getPluginNames()).toEqual(['fit']);
  });

  test('beforeRequest changes what is sent and afterResponse sees what came', async () => {
    const { client, model } = await world(['Hello.']);
    const afterResponse = vi.fn();
    client.use({
      name: 'loud',
      version: '1.0.0',
      hooks: { beforeRequest: (request) => ({ ...request, message: `${request.message}!` }), afterResponse },
    });
    await client.chat('hi');
    expect(model.requests[0]?.messages.at(-1)?.content).toBe('hi!');
    expect(afterResponse).toHaveBeenCalledWith(expect.objectContaining({ text: 'Hello.' }));
  });
});

describe('a chat', () => {
  test('streams text, and collects it', async () => {
    const { client } = await world(['One two three.', 'Four.']);
    const chunks = await collect(client.chatStream({ message: 'hi' }));
    expect(valuesOf(chunks, 'text').join('')).toBe('One two three.');
    const [start] = valuesOf(chunks, 'start');
    expect(start).toMatchObject({ runId: /^run_/, spaceId: /^space_/ });
    expect(chunks.at(-1)).toMatchObject({
      type: 'finish',
      value: { reason: 'stop', status: 'completed', pending: [] },
    });
    expect(await client.chat({ message: 'hi' })).toMatchObject({
      text: 'Four.',
      toolCalls: [],
      finish: { reason: 'stop' },
    });
  });

  test('streams reasoning apart from text', async () => {
    const { client } = await world([{ reasoning: 'Hm.', text: 'Yes.' }]);
    expect(await client.chat('hi')).toMatchObject({ reasoning: 'Hm.', text: 'Yes.' });
  });

  test('runs a client tool and goes on', async () => {
    const { client, model } = await world([asksForTime, 'It is noon.']);
    const heard: string[] = [];
    client.on('tool_start', ({ toolName }) => heard.push(`start ${toolName}`));
    client.on('tool_end', ({ toolName }) => heard.push(`end ${toolName}`));
    const chunks = await collect(client.use(timePlugin()).chatStream({ message: 'What time is it?' }));
    const kinds = chunks.map(({ type }) => type).filter((type) => type.startsWith('tool') || type === 'text');
    expect(kinds).toEqual(['tool_call', 'tool_end', 'tool_result', 'text']);
    const [result] = valuesOf(chunks, 'tool_result');
    expect(result).toMatchObject({
      toolName: 'get_time',
      local: true,
      result: { zone: 'UTC', time: 'noon' },
    });
    expect(heard).toEqual(['start get_time', 'end get_time']);
    expect(JSON.parse(String(model.requests[1]?.messages.at(-1)?.content))).toEqual({
      zone: 'UTC',
      time: 'noon',
    });
  });

  test('onToolCall runs the calls instead, and may do what would have been done', async () => {
    const { client, model } = await world([asksForTime, 'It is noon.']);
    client.use(timePlugin());
    const seen: string[] = [];
    const { toolResults } = await client.chat({
      message: 'What time is it?',
      onToolCall: async (call) => {
        seen.push(call.toolName);
        return { wrapped: await client.execute(call) };
      },
    });
    expect(seen).toEqual(['get_time']);
    expect(toolResults[0]?.result).toEqual({ wrapped: { zone: 'UTC', time: 'noon' } });
    expect(model.requests).toHaveLength(2);
  });

  test('a tool that fails reaches the model as its error', async () => {
    const { client, model } = await world([{ calls: [{ name: 'break_things' }] }, 'Sorry.']);
    client.registerTool({
      ...bare('break_things'),
      execute: () => {
        throw new Error('the cable is cut');
      },
    });
    const { toolResults, text } = await client.chat('do it');
    expect(toolResults[0]).toMatchObject({
      error: /the cable is cut/,
      result: { error: /the cable is cut/ },
      local: true,
    });
    expect(String(model.requests[1]?.messages.at(-1)?.content)).toMatch(/the cable is cut/);
    expect(text).toBe('Sorry.');
  });

  test('arguments that do not fit never reach the executor, and the model may repair them', async () => {
    const { client, model } = await world([
      { calls: [{ name: 'get_time', args: {} }] },
      asksForTime,
      'It is noon.',
    ]);
    const { toolResults, text } = await client.use(timePlugin()).chat('What time is it?');
    expect(toolResults).toMatchObject([
      { error: /Missing required parameter: zone/, local: false },
      { result: { zone: 'UTC' }, local: true },
    ]);
    expect(String(model.requests[1]?.messages.at(-1)?.content)).toMatch(/Missing required parameter: zone/);
    expect(text).toBe('It is noon.');
  });

  test('a tool that nobody knows is an error the model reads', async () => {
    const { client } = await world([{ calls: [{ name: 'teleport' }] }, 'I cannot.']);
    const { toolResults, text } = await client.chat({ message: 'go', onToolCall: () => 'never' });
    expect(toolResults).toMatchObject([{ toolName: 'teleport', error: /./, local: false }]);
    expect(text).toBe('I cannot.');
  });

  test('a result that JSON cannot say reaches the model as an error', async () => {
    const { client } = await world([{ calls: [{ name: 'loop' }] }, 'Sorry.']);
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const { toolResults } = await client
      .registerTool({ ...bare('loop'), execute: () => circle })
      .chat('do it');
    expect(toolResults[0]?.error).toMatch(/circular/i);
  });

  test('a result that does not fit its output schema reaches the model as an error', async () => {
    const { client } = await world([{ calls: [{ name: 'count' }] }, 'Sorry.']);
    client.registerTool({ ...bare('count'), output: { type: 'integer' }, execute: () => 'many' });
    const { toolResults, text } = await client.chat('do it');
    expect(toolResults[0]?.error).toMatch(/its result was rejected/);
    expect(text).toBe('Sorry.');
  });

  test('a tool that takes too long is stopped, and the model is told', async () => {
    const { client } = await world([{ calls: [{ name: 'wait' }] }, 'Sorry.']);
    const stopped = gate<unknown>();
    client.registerTool({
      ...bare('wait'),
      timeout: 20,
      execute: (_, { signal }) => {
        signal.addEventListener('abort', () => stopped.open(signal.reason));
        return new Promise(() => {});
      },
    });
    const { toolResults } = await client.chat('do it');
    expect(toolResults[0]?.error).toMatch(/no result within 20 ms/);
    expect(await stopped.promise).toMatchObject({ code: 'TIMEOUT' });
  });

  test('calls of one step run at the same time', async () => {
    const { client } = await world([{ calls: [{ name: 'left' }, { name: 'right' }] }, 'Both.']);
    const [left, right] = [gate(), gate()];
    const meets = (mine: typeof left, other: typeof left) => async () => {
      mine.open();
      await other.promise;
      return 'met';
    };
    client.registerTool({ ...bare('left'), execute: meets(left, right) });
    client.registerTool({ ...bare('right'), execute: meets(right, left) });
    const { toolResults } = await client.chat('do both');
    expect(toolResults.map(({ result }) => result)).toEqual(['met', 'met']);
  });

  test('server tools and client tools of one step live side by side', async () => {
    const { client, model } = await world([{ calls: [{ name: 'here' }, { name: 'there' }] }, 'Both.']);
    await client.agents.put('mixed', {
      model: { provider: 'openai', name: 'scripted', baseUrl: model.baseUrl, apiKey: 'none' },
      tools: [{ ...bare('there'), executionType: 'basic', execution: { static: 't' } }],
    });
    client.registerTool({ ...bare('here'), execute: () => 'h' });
    const { toolResults } = await client.chat({ agent: 'mixed', message: 'both' });
    expect(toolResults.map(({ toolName, local }) => [toolName, local]).sort()).toEqual([
      ['here', true],
      ['there', false],
    ]);
  });

  test('progress of a tool reaches those who watch', async () => {
    const { client } = await world([{ calls: [{ name: 'dig' }] }, 'Done.']);
    const seen = gate();
    client.registerTool({
      ...bare('dig'),
      execute: async (_, { progress }) => {
        await progress({ percent: 50 });
        await seen.promise;
        return 'deep';
      },
    });
    const reports: unknown[] = [];
    for await (const chunk of client.chatStream({ message: 'dig' })) {
      if (chunk.type !== 'tool_progress') continue;
      reports.push(chunk.value.progress);
      seen.open();
    }
    expect(reports).toEqual([{ percent: 50 }]);
  });

  test('maxToolRounds hands the run back, with the calls that are open', async () => {
    const { client, model } = await world(() => asksForTime);
    client.use(timePlugin());
    const { finish, toolResults } = await client.chat({ message: 'again and again', maxToolRounds: 2 });
    expect(finish).toMatchObject({
      reason: 'tool-calls',
      status: 'waiting_tool',
      pending: [{ toolName: 'get_time' }],
    });
    expect(toolResults).toHaveLength(2);
    expect(model.requests).toHaveLength(3);
  });

  test('five rounds unless said otherwise, and zero is no limit', async () => {
    const { client, model } = await world((_, count) => (count < 14 ? asksForTime : 'Enough.'));
    await client.agents.put('patient', {
      model: { provider: 'openai', name: 'scripted', baseUrl: model.baseUrl, apiKey: 'none' },
      loop: { maxSteps: 50 },
    });
    client.use(timePlugin());
    const limited = await client.chat({ agent: 'patient', message: 'go' });
    expect([limited.finish.reason, limited.toolResults.length]).toEqual(['tool-calls', 5]);
    const unlimited = await client.chat({ agent: 'patient', message: 'go on', maxToolRounds: 0 });
    expect(unlimited).toMatchObject({ text: 'Enough.', finish: { reason: 'stop' } });
  });

  test('a tool that nobody here runs ends the stream with the call', async () => {
    const { client } = await world([
      { calls: [{ name: 'ask_user', args: { question: 'Which?' } }] },
      'Thanks.',
    ]);
    const { finish, runId } = await client.chat('ask me');
    expect(finish).toMatchObject({ reason: 'tool-calls', pending: [{ toolName: 'ask_user' }] });
    const toolCallId = finish.pending[0]?.toolCallId ?? '';
    const receipt = await client.tools.submitRunResult(runId, { callId: toolCallId, result: 'blue' });
    expect(await client.tools.submitRunResult(runId, { toolCallId, result: 'blue' })).toEqual(receipt);
    await expect(client.tools.submitRunResult(runId, { toolCallId, result: 'red' })).rejects.toThrow(
      ConflictError,
    );
    for await (const event of client.runs.subscribe(runId)) if (event.type === 'run-finish') break;
    expect((await client.runs.get(runId)).text).toBe('Thanks.');
  });

  test('a chat that waits for others goes on when one of them has answered', async () => {
    const { client, another } = await world([
      { calls: [{ name: 'ask_user', args: { question: 'Which?' } }] },
      'Thanks.',
    ]);
    const { id } = await client.spaces.create();
    await another()
      .tools.serve(id, { tools: { ask_user: () => 'blue' } })
      .ready();
    const { text, toolResults } = await client.chat({ space: id, message: 'ask me', waitForTools: true });
    expect(text).toBe('Thanks.');
    expect(toolResults[0]).toMatchObject({ result: 'blue', local: false });
  });

  test('a message into a space whose run waits goes on with that run, and tells only what is new', async () => {
    const { client } = await world([
      { text: 'One moment.', calls: [{ name: 'ask_user', args: { question: 'Which?' } }] },
      'Never mind then.',
    ]);
    const first = await client.chat('ask me');
    const second = await client.chat({ space: first.spaceId, message: 'forget it' });
    expect(second.runId).toBe(first.runId);
    expect([first.text, second.text]).toEqual(['One moment.', 'Never mind then.']);
  });

  test("a plugin's tool that brings its executor is run", async () => {
    const { client } = await world([{ calls: [{ name: 'inl' }] }, 'Done.']);
    client.use({ name: 'p', version: '1.0.0', tools: [{ ...bare('inl'), execute: () => 'ran' }] });
    expect((await client.chat('use inl')).toolResults[0]).toMatchObject({ result: 'ran', local: true });
  });

  test('with no executor, a plugin is asked through onToolCall', async () => {
    const { client } = await world([
      { calls: [{ name: 'ask_user', args: { question: 'Which?' } }] },
      'Thanks.',
    ]);
    client.use({
      name: 'form',
      version: '1.0.0',
      hooks: { onToolCall: async ({ args }) => `${args.question} Blue.` },
    });
    expect((await client.chat('ask me')).toolResults[0]).toMatchObject({
      result: 'Which? Blue.',
      local: true,
    });
  });

  test('a call that no plugin wants is given back', async () => {
    const { client } = await world([
      { calls: [{ name: 'ask_user', args: { question: 'Which?' } }] },
      'Thanks.',
    ]);
    client.use({ name: 'form', version: '1.0.0', hooks: { onToolCall: () => undefined } });
    const { finish, runId } = await client.chat('ask me');
    expect(finish.reason).toBe('tool-calls');
    expect((await client.runs.get(runId)).pending.calls[0]?.claim ?? null).toBeNull();
  });

  test('an abort ends the stream, stops the tool and gives the call back', async () => {
    const { client } = await world([{ calls: [{ name: 'wait' }] }, 'Never.']);
    const [begun, stopped] = [gate(), gate()];
    client.registerTool({
      ...bare('wait'),
      execute: (_, { signal }) => {
        signal.addEventListener('abort', () => stopped.open());
        begun.open();
        return new Promise(() => {});
      },
    });
    const stop = new AbortController();
    let runId = '';
    const watch = async (): Promise<void> => {
      for await (const chunk of client.chatStream({ message: 'go', signal: stop.signal })) {
        if (chunk.type === 'start') runId = chunk.value.runId;
      }
    };
    const watched = watch();
    await begun.promise;
    stop.abort();
    await expect(watched).rejects.toThrow(AbortedError);
    await stopped.promise;
    for await (const event of client.runs.subscribe(runId)) if (event.type === 'tool-released') break;
    expect((await client.runs.get(runId)).pending.calls[0]?.claim ?? null).toBeNull();
  });

  test('leaving the loop early stops the tool too', async () => {
    const { client } = await world([{ calls: [{ name: 'wait' }] }, 'Never.']);
    const [begun, stopped] = [gate(), gate()];
    client.registerTool({
      ...bare('wait'),
      execute: (_, { signal }) => {
        signal.addEventListener('abort', () => stopped.open());
        begun.open();
        return new Promise(() => {});
      },
    });
    for await (const chunk of client.chatStream({ message: 'go' })) {
      if (chunk.type !== 'step_finish') continue;
      await begun.promise;
      break;
    }
    await stopped.promise;
  });

  test('leaving the loop at once closes the stream', async () => {
    const bodies: Array<ReadableStream<Uint8Array> | null> = [];
    const watching: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      bodies.push(response.body);
      return response;
    };
    const { client } = await world([{ text: 'Wait for it', hold: new Promise(() => {}) }], {
      fetch: watching,
    });
    for await (const chunk of client.chatStream({ message: 'go' })) if (chunk.type === 'start') break;
    expect(await bodies[0]?.getReader().read()).toEqual({ done: true, value: undefined });
  });

  test('a cancelled run stops the tool and says so', async () => {
    const { client } = await world([{ calls: [{ name: 'wait' }] }, 'Never.']);
    const stopped = gate();
    let cancelled: Promise<unknown> | undefined;
    client.registerTool({
      ...bare('wait'),
      execute: (_, { signal, runId }) => {
        signal.addEventListener('abort', () => stopped.open());
        cancelled = client.runs.cancel(runId ?? '');
        return new Promise(() => {});
      },
    });
    const { finish } = await client.chat('go');
    expect(finish).toMatchObject({ reason: 'cancelled', status: 'cancelled' });
    await stopped.promise;
    // The run ends before the answer to this arrives, and the gateway must not end before it.
    await cancelled;
  });
});

describe('approvals', () => {
  const mail = {
    calls: [{ name: 'send_email', args: { to: 'ada@example.com', subject: 'Hi', body: 'There' } }],
  };

  test('onApproval decides', async () => {
    const { client } = await world([mail, 'Not sent.']);
    const chunks = await collect(
      client.chatStream({
        message: 'mail',
        onApproval: ({ toolName }) => ({ approved: false, reason: `no ${toolName}` }),
      }),
    );
    expect(valuesOf(chunks, 'approval_decided')).toMatchObject([
      { approved: false, reason: 'no send_email' },
    ]);
    expect(valuesOf(chunks, 'tool_result')).toMatchObject([{ error: /no send_email/ }]);
  });

  test('without it a stream waits for whoever decides', async () => {
    const { client } = await world([mail, 'Sent.']);
    const texts: string[] = [];
    for await (const chunk of client.chatStream({ message: 'mail' })) {
      if (chunk.type === 'approval')
        await client.approvals.decide(chunk.value.approvalId, { approved: true });
      if (chunk.type === 'text') texts.push(chunk.value);
    }
    expect(texts.join('')).toBe('Sent.');
  });

  test('a whole answer ends with the question', async () => {
    const { client } = await world([mail, 'Sent.']);
    const { finish, approvals } = await client.chat('mail');
    expect(finish.reason).toBe('approval');
    expect(approvals).toMatchObject([{ toolName: 'send_email', input: { to: 'ada@example.com' } }]);
  });

  test('a client tool that needs a yes runs after it, with the input that was agreed on', async () => {
    const { client, model } = await world([{ calls: [{ name: 'pay', args: { amount: 5 } }] }, 'Paid.']);
    await client.agents.put('payer', {
      model: { provider: 'openai', name: 'scripted', baseUrl: model.baseUrl, apiKey: 'none' },
      tools: [{ name: 'pay', description: 'Pays.', parameters: { type: 'object' }, approval: 'always' }],
    });
    const paid: unknown[] = [];
    const result = await client.chat({
      agent: 'payer',
      message: 'pay',
      onApproval: () => ({ approved: true, input: { amount: 3 } }),
      onToolCall: ({ args }) => {
        paid.push(args);
        return 'ok';
      },
    });
    expect(paid).toEqual([{ amount: 3 }]);
    expect(result.text).toBe('Paid.');
  });
});

describe('conversations', () => {
  test('messages that go on where an earlier call ended go on in its space', async () => {
    const { client, model } = await world(['Hello Ada.', 'Ada.', 'Who?']);
    const first = await client.chat({ messages: [{ role: 'user', content: 'I am Ada.' }] });
    const second = await client.chat({
      messages: [
        { role: 'user', content: 'I am Ada.' },
        { role: 'assistant', content: first.text },
        { role: 'user', content: 'Who am I?' },
      ],
    });
    expect(second.spaceId).toBe(first.spaceId);
    expect(JSON.stringify(model.requests[1]?.messages)).toMatch(/I am Ada.*Hello Ada.*Who am I/);
    const other = await client.chat({ messages: [{ role: 'user', content: 'Who am I?' }] });
    expect(other.spaceId).not.toBe(first.spaceId);
  });

  test('what was said before travels along, for agents that take the caller’s word for it', async () => {
    const { client, model, another } = await world(['Ada.']);
    const scripted = { provider: 'openai', name: 'scripted', baseUrl: model.baseUrl, apiKey: 'none' };
    await client.agents.put('stateless', { model: scripted, history: 'client' });
    const messages = [
      { role: 'user', content: 'I am Ada.' },
      { role: 'assistant', content: 'Hello Ada.' },
      { role: 'user', content: 'Who am I?' },
    ] satisfies ChatMessage[];
    expect((await another().chat({ agent: 'stateless', messages })).text).toBe('Ada.');
    expect(JSON.stringify(model.requests[0]?.messages)).toMatch(/I am Ada.*Hello Ada.*Who am I/);
  });

  test('a message alone sends no history', async () => {
    const bodies: Array<Record<string, unknown>> = [];
    const watching: typeof fetch = (input, init) => {
      if (init?.method === 'POST') bodies.push(JSON.parse(String(init.body)));
      return fetch(input, init);
    };
    const { client } = await world(['One.', 'Two.'], { fetch: watching });
    await client.chat('hi');
    const earlier = { role: 'assistant', content: 'Hello.' } as const;
    await client.chat({ messages: [earlier, { role: 'user', content: 'and?' }] });
    expect(bodies[0]).toEqual({ message: 'hi' });
    expect(bodies[1]).toEqual({ message: 'and?', history: [earlier] });
  });

  test('a space that is named is used', async () => {
    const { client } = await world(['One.', 'Two.']);
    const { id } = await client.spaces.create({ title: 'Here' });
    expect((await client.chat({ message: 'hi', space: id })).spaceId).toBe(id);
  });

  test('the last message must be the user’s', async () => {
    const { client } = await world([]);
    await expect(client.chat({ messages: [{ role: 'assistant', content: 'x' }] })).rejects.toThrow(
      ValidationError,
    );
    await expect(client.chat({})).rejects.toThrow(/must be from "user", there is none/);
  });

  test('a new message while a tool runs supersedes the call', async () => {
    const { client } = await world((_, count) =>
      count === 0 ? { calls: [{ name: 'wait' }] } : 'Never mind.',
    );
    const [begun, stopped] = [gate(), gate()];
    client.registerTool({
      ...bare('wait'),
      execute: (_, { signal }) => {
        signal.addEventListener('abort', () => stopped.open());
        begun.open();
        return new Promise(() => {});
      },
    });
    const chunks: Chunk[] = [];
    const watch = async (): Promise<void> => {
      for await (const chunk of client.chatStream({ message: 'go' })) {
        chunks.push(chunk);
        if (chunk.type === 'step_finish' && chunk.value.step === 1) {
          await begun.promise;
          const [start] = valuesOf(chunks, 'start');
          await client.spaces.post(start?.spaceId ?? '', 'stop that');
        }
      }
    };
    await watch();
    await stopped.promise;
    expect(valuesOf(chunks, 'tool_result')[0]).toMatchObject({ error: expect.stringMatching(/./) });
    expect(valuesOf(chunks, 'text').join('')).toBe('Never mind.');
  });
});

describe('errors', () => {
  test('a wrong key is an access error', async () => {
    const { another } = await world([]);
    await expect(another({ key: 'sk_wrong_wrong_wrong_wrong' }).chat('hi')).rejects.toThrow(AccessError);
  });

  test('what the gateway refuses is told with all places', async () => {
    const { client } = await world([]);
    const attempt = client.agents.put('bad', { loop: { maxSteps: 'many' }, tools: [{ name: '1' }] });
    await expect(attempt).rejects.toMatchObject({ status: 422, code: 'VALIDATION_FAILED' });
    await attempt.catch((error: ValidationError) => expect(error.errors.length).toBeGreaterThan(1));
  });

  test('a model that fails ends the run with its reason', async () => {
    const { client } = await world([{ status: 400 }]);
    const { finish } = await client.chat('hi');
    expect(finish).toMatchObject({ status: 'failed', reason: 'model-error' });
  });

  test('a gateway that is away is a connection error', async () => {
    const { gateway, client } = await world([]);
    await gateway.kill();
    await expect(client.spaces.list()).rejects.toMatchObject({ code: 'UNREACHABLE', retryable: true });
  });
});
