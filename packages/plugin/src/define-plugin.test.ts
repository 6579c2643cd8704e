import { describe, expect, test } from 'vitest';
import { definePlugin, type PluginTool } from './define-plugin.js';

/** Runs the code of a tool as a sandbox does. */
function run(code: string, args: object): Promise<unknown> {
  return new Function('args', `return (async () => { ${code}\n })();`)(args) as Promise<unknown>;
}

function made(execute: unknown, helpers?: Record<string, unknown>): string {
  const tool = { name: 'add', description: 'Adds.', execute } as PluginTool;
  const { tools } = definePlugin({
    id: 'sums',
    name: 'Sums',
    version: '1.0.0',
    tools: [tool],
    ...(helpers && { helpers }),
  });
  return tools[0]?.executorCode as string;
}

interface Pair {
  a: number;
  b: number;
}

describe('every way to write a function becomes code that runs', () => {
  const methods = {
    execute(args: Pair) {
      return args.a + args.b;
    },
    async later(args: Pair) {
      return args.a + args.b;
    },
    async(args: Pair) {
      return args.a + args.b;
    },
    get(args: Pair) {
      return args.a + args.b;
    },
    'with space'(args: Pair) {
      return args.a + args.b;
    },
    [`com${'puted'}`](args: Pair) {
      return args.a + args.b;
    },
  };
  test.each<[string, unknown]>([
    ['arrow', (args: Pair) => args.a + args.b],
    ['async arrow', async (args: Pair) => args.a + args.b],
    ['arrow with a bare parameter', new Function('return args => args.a + args.b')()],
    ['destructured', ({ a, b }: Pair) => a + b],
    ['with a default', async ({ a, b = 2 }: Pair) => ({ sum: a + b }).sum],
    [
      'function',
      function sum(args: Pair) {
        return args.a + args.b;
      },
    ],
    ['async function', async (args: Pair) => args.a + args.b],
    ['method', methods.execute],
    ['async method', methods.later],
    ['method named async', methods.async],
    ['method named get', methods.get],
    ['method with a quoted name', methods['with space']],
    ['method with a computed name', (methods as Record<string, unknown>).computed],
  ])('%s', async (_, execute) => {
    expect(await run(made(execute), { a: 1, b: 2 })).toBe(3);
  });
});

test('helpers are there by their names', async () => {
  const helpers = {
    double: (x: number) => x * 2,
    table: { unit: 'm' },
    twice(x: number) {
      return x * 2;
    },
  };
  const execute = new Function('return ({ a }) => [double(a), twice(a), table.unit]')();
  expect(await run(made(execute, helpers), { a: 4 })).toEqual([8, 8, 'm']);
});

test('code gets the helpers that it mentions, and those that they mention', () => {
  const one = new Function('return () => two()')();
  const two = new Function('return () => 2')();
  const code = made(new Function('return () => one()')(), { three: 3, two, one });
  expect(code).toBe('const two = () => 2;\nconst one = () => two();\nreturn (() => one())(args);');
});

test.each([
  ['a bound function', (() => 1).bind(null)],
  ['a built-in', Math.max],
  ['a class', class {}],
  ['a text', 'return 1'],
])('%s is refused', (_, execute) => {
  expect(() => made(execute)).toThrow(/\/tools\/0\/execute/);
});

test.each([
  ['a helper with no name', { 'a b': 1 }],
  ['a helper that is nothing', { a: undefined }],
])('%s is refused', (_, helpers) => {
  expect(() => made(() => 1, helpers)).toThrow(/\/helpers\//);
});

test('the rest of the package is as it was written', () => {
  const source = {
    id: 'a',
    name: 'A',
    version: '1.0.0',
    permissions: ['storage' as const],
    engine: '>=0.1',
    tools: [{ name: 'a', description: 'A.', timeout: '1s', execute: () => 1 }],
  };
  expect(definePlugin(source)).toEqual({
    id: 'a',
    name: 'A',
    version: '1.0.0',
    permissions: ['storage'],
    engine: '>=0.1',
    tools: [{ name: 'a', description: 'A.', timeout: '1s', executorCode: 'return (() => 1)(args);' }],
  });
});
