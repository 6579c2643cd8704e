import { describe, expect, test, vi } from 'vitest';
import type { ChatResult } from './chunk.js';
import { PluginError, ToolError } from './error.js';
import type { ToolgatePlugin } from './plugin.js';
import { PluginRegistry } from './plugin-registry.js';
import type { ToolCallLike, ToolContext } from './tool.js';
import { readToolCall } from './tool-call.js';

const definition = (name: string) => ({
  name,
  description: 'A tool.',
  parameters: { type: 'object' } as const,
});

function plugin(more: Partial<ToolgatePlugin> = {}): ToolgatePlugin {
  return {
    name: 'clock',
    version: '1.0.0',
    tools: [definition('get_time')],
    executors: { get_time: async () => 'noon' },
    ...more,
  };
}

function registry(...plugins: ToolgatePlugin[]): PluginRegistry {
  const made = new PluginRegistry(() => {});
  for (const one of plugins) made.add(one);
  return made;
}

const context: ToolContext = {
  toolCallId: 'call_1',
  toolName: 'x',
  signal: new AbortController().signal,
  progress: async () => {},
  history: async () => [],
  member: async () => undefined,
};
const run = (of: PluginRegistry, call: ToolCallLike) => of.execute(readToolCall(call), context);

function refused(broken: Partial<ToolgatePlugin>, words: RegExp, code = 'PLUGIN_INVALID'): void {
  const made = registry();
  let error: unknown;
  try {
    made.add(plugin(broken));
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(PluginError);
  expect((error as PluginError).code).toBe(code);
  expect((error as PluginError).message).toMatch(words);
  expect(made.names()).toEqual([]);
  expect(made.definitions()).toEqual([]);
}

describe('registration', () => {
  test('a plugin with a tool and its executor is taken', () => {
    const made = registry(plugin());
    expect(made.has('clock')).toBe(true);
    expect(made.hasExecutor('get_time')).toBe(true);
  });
  test('a plugin without a name is refused', () => refused({ name: '' }, /needs a name/));
  test('a plugin without a version is refused', () => refused({ version: '' }, /needs a version/));
  test('a version that is none is refused', () => refused({ version: 'new' }, /expected one like "1.0.0"/));
  test('nothing at all is refused with words', () => {
    expect(() => registry(undefined as unknown as ToolgatePlugin)).toThrow(/needs a name/);
  });
  test('the same plugin twice is refused', () => {
    expect(() => registry(plugin(), plugin())).toThrow(/already registered/);
  });
  test('a tool name that starts with a digit is refused', () =>
    refused({ tools: [definition('1st')], executors: {} }, /\/0\/name/));
  test.each(['get time', 'get.time', 'zeit_für', 'gеt', '-x', 'a'.repeat(65), ''])(
    'the tool name %j is refused',
    (name) => refused({ tools: [definition(name)], executors: {} }, /is not a name/),
  );
  test('everything that is wrong with its tools is told at once', () => {
    const broken = { name: '1', description: '', parameters: { type: 'string' } };
    refused({ tools: [broken, definition('get_time')] }, /\/0\/name.*\/0\/description.*\/0\/parameters/);
  });
  test('two tools of one name are refused', () =>
    refused({ tools: [definition('get_time'), definition('get_time')] }, /two tools are named "get_time"/));
  test('an executor without a tool is refused', () =>
    refused({ executors: { get_time: async () => 1, other: async () => 2 } }, /executor for "other"/));
  test('an executor that is no function is refused', () =>
    refused({ executors: { get_time: 'x' as never } }, /not a function/));
  test('a tool that nothing would execute is refused', () => {
    refused({ executors: {} }, /"clock" has no executor for "get_time", expected `execute`/);
    refused({ tools: [definition('get_time'), definition('bare')] }, /no executor for "bare", expected/);
    const made = registry(plugin({ executors: {}, hooks: { onToolCall: () => 'noon' } }));
    expect(made.hasExecutor('get_time')).toBe(false);
  });
  test('a plugin may get its executors in onRegister, and is read again after it', async () => {
    const late = plugin({ executors: {}, hooks: { onRegister: () => {} } });
    const made = registry(late);
    expect(() => made.refresh('clock')).toThrow(/no executor for "get_time"/);
    late.executors = { get_time: async () => 'noon' };
    made.refresh('clock');
    expect(await run(made, { toolName: 'get_time' })).toBe('noon');
  });
  test.each(['30', '30 parsecs', '0s', '25d', -5, 0, Number.NaN])('the timeout %j is refused', (timeout) => {
    const words = /the `timeout` of .*"(x|clock)" is a number of milliseconds, or a string such as "30s"/;
    const tool = { ...definition('x'), execute: () => 1 };
    refused({ tools: [{ ...tool, timeout }], executors: {} }, words);
    refused({ timeout }, words);
    const timeoutMs = timeout as number;
    const ready = { definition: definition('x'), timeoutMs, execute: () => 1 };
    refused({ tools: [ready], executors: {} }, words);
    expect(() => registry().addTool(ready)).toThrow(words);
  });
  test('a tool with an `execute` that is no function is refused', () => {
    const tools = [{ ...definition('x'), execute: 'x' as never }];
    refused({ tools, executors: {} }, /tool "x" has no `execute`, which must be a function/);
  });
  test('a tool with `execute` and without parameters is refused', () => {
    const tools = [{ name: 'x', description: 'A tool.', execute: () => 1 } as never];
    refused({ tools, executors: {} }, /\/0\/parameters: the input of a tool is an object/);
  });
  test('a tool name of another plugin is refused, and the other keeps it', async () => {
    const made = registry(plugin());
    const second = plugin({ name: 'other', executors: { get_time: async () => 'midnight' } });
    expect(() => made.add(second)).toThrow(/already registered by "clock"/);
    expect(await run(made, { toolName: 'get_time' })).toBe('noon');
  });
  test('names of the prototype are names like others', async () => {
    const tools = [definition('constructor'), definition('__proto__'), definition('toString')];
    const executors = { constructor: async () => 1, toString: async () => 2, ['__proto__']: async () => 3 };
    const made = registry(plugin({ tools, executors }));
    expect(made.hasExecutor('hasOwnProperty')).toBe(false);
    expect(await run(made, { toolName: '__proto__' })).toBe(3);
  });
});

describe('removal', () => {
  test('a removed plugin takes its tools along', () => {
    const made = registry(plugin());
    made.remove('clock');
    expect(made.has('clock')).toBe(false);
    expect(made.definitions()).toEqual([]);
    expect(made.hasExecutor('get_time')).toBe(false);
  });
  test('a plugin that is not there cannot be removed', () => {
    expect(() => registry().remove('clock')).toThrow(/there is no plugin named "clock"/);
  });
  test('its name and its tools are free again', () => {
    const made = registry(plugin());
    made.remove('clock');
    made.add(plugin({ version: '2.0.0' }));
    expect(made.names()).toEqual(['clock']);
  });
});

describe('definitions', () => {
  test('all tools of all plugins, in order', () => {
    const executors = { b: async () => 1, c: async () => 2 };
    const two = plugin({ name: 'two', tools: [definition('b'), definition('c')], executors });
    expect(
      registry(plugin(), two)
        .definitions()
        .map(({ name }) => name),
    ).toEqual(['get_time', 'b', 'c']);
  });
  test('none without plugins', () => expect(registry().definitions()).toEqual([]));
  test('they hold nothing but what the gateway takes', () => {
    const tool = { definition: definition('x'), timeoutMs: 5, execute: () => 1 };
    const inline = { ...definition('y'), timeout: 5, outputSchema: { type: 'string' }, execute: () => '1' };
    expect(registry(plugin({ tools: [tool, inline], executors: {} })).definitions()).toEqual([
      definition('x'),
      { ...definition('y'), outputSchema: { type: 'string' } },
    ]);
  });
});

describe('execution', () => {
  test('the executor is given the arguments and the context', async () => {
    const execute = vi.fn(async ({ zone }: { zone: string }) => `noon in ${zone}`);
    const made = registry(plugin({ executors: { get_time: execute } }));
    expect(await run(made, { toolCallId: 'c', toolName: 'get_time', args: { zone: 'UTC' } })).toBe(
      'noon in UTC',
    );
    expect(execute).toHaveBeenCalledWith({ zone: 'UTC' }, context);
  });
  test('a tool may bring its executor, as `defineTool` takes it', async () => {
    const tools = [{ ...definition('greet'), timeout: 500, execute: (args: object) => ({ greeted: args }) }];
    const made = registry(plugin({ tools, executors: {} }));
    expect([made.hasExecutor('greet'), made.timeoutOf('greet')]).toEqual([true, 500]);
    const spelled = { ...definition('wait'), timeout: '1.5m', execute: () => 1 };
    made.add(
      plugin({
        name: 'waits',
        timeout: '2s',
        tools: [spelled, definition('other')],
        executors: { other: () => 1 },
      }),
    );
    expect([made.timeoutOf('wait'), made.timeoutOf('other')]).toEqual([90_000, 2000]);
    expect(await run(made, { toolName: 'greet', args: { name: 'Ada' } })).toEqual({
      greeted: { name: 'Ada' },
    });
  });
  test('a tool that brings a Standard Schema is given valid arguments only', async () => {
    const validate = (value: unknown) => ({ issues: [{ message: `${JSON.stringify(value)} is wrong` }] });
    const input = { '~standard': { version: 1, vendor: 'test', validate } };
    const tools = [{ ...definition('greet'), input, execute: () => 'never' } as never];
    await expect(run(registry(plugin({ tools, executors: {} })), { toolName: 'greet' })).rejects.toThrow(
      '{} is wrong',
    );
  });
  test.each([
    { id: 'c', name: 'get_time', arguments: { zone: 'UTC' } },
    { id: 'c', name: 'get_time', arguments: '{"zone":"UTC"}' },
    { callId: 'c', toolName: 'get_time', input: { zone: 'UTC' } },
    { id: 'c', function: { name: 'get_time', arguments: '{"zone":"UTC"}' } },
  ])('a call in other words is understood: %j', async (call) => {
    const made = registry(plugin({ executors: { get_time: async (args: unknown) => args } }));
    expect(await run(made, call)).toEqual({ zone: 'UTC' });
    expect(readToolCall(call).toolCallId).toBe('c');
  });
  test.each(['', undefined, null])('no arguments (%j) are an empty object', (given) => {
    expect(readToolCall({ name: 'x', arguments: given }).args).toEqual({});
  });
  test.each(['{', '[1]', '7', 7])('arguments that are no object (%j) are refused', (given) => {
    expect(() => readToolCall({ name: 'x', arguments: given })).toThrow(ToolError);
  });
  test('a tool that nothing runs is refused', async () => {
    await expect(run(registry(plugin()), { toolName: 'other' })).rejects.toThrow(
      '"other" has no executor on this client',
    );
  });
  test('it is known which tools have an executor', () => {
    const hooks = { onToolCall: () => undefined };
    const made = registry(plugin({ tools: [definition('get_time'), definition('bare')], hooks }));
    expect([made.hasExecutor('get_time'), made.hasExecutor('bare'), made.hasExecutor('x')]).toEqual([
      true,
      false,
      false,
    ]);
  });
  test('a call without executor goes to the first onToolCall that gives something', async () => {
    const asked: string[] = [];
    const hook = (name: string, result: unknown) =>
      plugin({
        name,
        tools: [],
        executors: {},
        hooks: {
          onToolCall: (call) => {
            asked.push(`${name} ${call.toolName}`);
            return result;
          },
        },
      });
    const made = registry(hook('a', undefined), hook('b', Promise.resolve('b did it')), hook('c', 'never'));
    expect(await run(made, { toolName: 'anything' })).toBe('b did it');
    expect(asked).toEqual(['a anything', 'b anything']);
  });
});

describe('hooks', () => {
  test('beforeRequest changes what is sent', async () => {
    const made = registry(
      plugin({ hooks: { beforeRequest: (request) => ({ ...request, agent: 'helper' }) } }),
    );
    expect(await made.beforeRequest({ message: 'hi' })).toEqual({ message: 'hi', agent: 'helper' });
  });
  test('beforeRequest hooks run in order, each on what the last one gave', async () => {
    const adds = (name: string) =>
      plugin({
        name,
        tools: [],
        executors: {},
        hooks: { beforeRequest: async (request) => ({ ...request, message: `${request.message}${name}` }) },
      });
    expect(await registry(adds('1'), adds('2'), adds('3')).beforeRequest({ message: '' })).toEqual({
      message: '123',
    });
  });
  test('afterResponse is told how it ended', async () => {
    const afterResponse = vi.fn();
    const response = { text: 'done' } as ChatResult;
    await registry(plugin({ hooks: { afterResponse } })).afterResponse(response);
    expect(afterResponse).toHaveBeenCalledWith(response);
  });

  test('one that fails names its plugin, and keeps nobody from being called', async () => {
    const fails = (name: string) =>
      plugin({
        name,
        tools: [],
        executors: {},
        hooks: {
          beforeRequest: () => Promise.reject(new Error('no cable')),
          afterResponse: () => {
            throw new Error(`${name} broke`);
          },
          onToolCall: () => {
            throw new Error('no hands');
          },
        },
      });
    const afterResponse = vi.fn();
    const last = plugin({ name: 'last', tools: [], executors: {}, hooks: { afterResponse } });
    const made = registry(fails('one'), fails('two'), last);
    await expect(made.beforeRequest({ message: 'hi' })).rejects.toMatchObject({
      code: 'PLUGIN_FAILED',
      message: 'plugin "one": its hook beforeRequest failed: no cable',
      cause: expect.objectContaining({ message: 'no cable' }),
    });
    await expect(made.afterResponse({} as ChatResult)).rejects.toThrow(
      'plugin "one": its hook afterResponse failed: one broke; plugin "two": its hook afterResponse failed: two broke',
    );
    expect(afterResponse).toHaveBeenCalledOnce();
    const call = { toolCallId: 'c', toolName: 'any', args: {} };
    await expect(made.execute(call, {} as never)).rejects.toThrow(
      'plugin "one": its hook onToolCall failed: no hands',
    );
  });
});

describe('dependencies', () => {
  const needs = (range: string) =>
    plugin({ name: 'top', tools: [], executors: {}, dependencies: { clock: range } });
  test('one that is there in the right version is enough', () => {
    expect(registry(plugin(), needs('^1.0')).names()).toEqual(['clock', 'top']);
  });
  test('one that is missing is named', () => {
    expect(() => registry(needs('^1.0'))).toThrow(/needs plugin "clock" \^1.0, register that first/);
  });
  test('one in another version is named with it', () => {
    expect(() => registry(plugin(), needs('^2'))).toThrow(/\^2, but 1.0.0 is registered/);
  });
  test('a range that is none is refused', () => {
    expect(() => registry(plugin(), needs('newest'))).toThrow(/not a version range/);
  });
  test('a plugin that another needs stays', () => {
    const made = registry(plugin(), needs('*'));
    expect(() => made.remove('clock')).toThrow(/"top" depends on it/);
    expect(made.has('clock')).toBe(true);
  });
});

test('tools that a plugin has dropped are not offered, but can be called until it is removed', async () => {
  const tool = (name: string) => ({
    definition: { name, description: 'A tool.', parameters: { type: 'object' } },
    execute: () => name,
  });
  const context = {
    toolCallId: 'c',
    toolName: 'x',
    signal: AbortSignal.any([]),
    progress: async () => {},
    history: async () => [],
    member: async () => undefined,
  };
  const changing = { name: 'p', version: '1.0.0', tools: [tool('old')] };
  const made = registry(changing);
  changing.tools = [tool('new')];
  made.refresh('p');
  expect(made.definitions().map(({ name }) => name)).toEqual(['new']);
  expect(made.hasExecutor('old')).toBe(false);
  expect(made.handles('old')).toBe(true);
  expect(await made.execute({ toolCallId: 'c', toolName: 'old', args: {} }, context)).toBe('old');
  // Many tools later it is forgotten.
  for (let turn = 0; turn < 300; turn += 1) {
    changing.tools = [tool(`t${turn}`)];
    made.refresh('p');
  }
  expect(made.handles('old')).toBe(false);
  expect(made.handles('t298')).toBe(true);
  made.remove('p');
  expect(made.handles('t298')).toBe(false);
});

test('the names of all plugins, in order', () => {
  expect(registry(plugin(), plugin({ name: 'b', tools: [], executors: {} })).names()).toEqual(['clock', 'b']);
});

test('with debug on it says what it does', () => {
  const lines: string[] = [];
  const made = new PluginRegistry((line) => lines.push(line));
  made.add(plugin());
  made.remove('clock');
  expect(lines).toEqual(['plugin clock 1.0.0: 1 tools', 'plugin clock removed']);
});
