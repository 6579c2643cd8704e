import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { PluginError } from './error.js';
import type { FromSchema } from './json-schema.js';
import { defineTool } from './runnable.js';
import type { StandardSchema } from './standard-schema.js';
import type { RunnableTool, ToolContext } from './tool.js';

const context: ToolContext = {
  toolCallId: 'call_1',
  toolName: 'x',
  signal: new AbortController().signal,
  progress: async () => {},
  history: async () => [],
  member: async () => undefined,
};
const words = { name: 'search', description: 'Searches.' };

async function fails(tool: RunnableTool, args: Record<string, unknown>, message: RegExp): Promise<void> {
  await expect(async () => tool.execute(args, context)).rejects.toMatchObject({
    code: 'TOOL_ARGUMENTS',
    message,
  });
}

describe('a tool written with a schema library', () => {
  test('zod: types are inferred, arguments checked, defaults filled in', async () => {
    const tool = defineTool({
      ...words,
      input: z.object({ query: z.string().min(2), limit: z.number().int().default(10) }),
      output: z.object({ found: z.number() }),
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ query: string; limit: number }>();
        return { found: args.limit };
      },
    });
    expect(tool.definition.parameters).toMatchObject({
      type: 'object',
      properties: { query: { type: 'string', minLength: 2 }, limit: { type: 'integer' } },
      required: ['query'],
    });
    expect(tool.definition.parameters).not.toHaveProperty('$schema');
    expect(tool.definition.outputSchema).toMatchObject({ type: 'object', required: ['found'] });
    expect(await tool.execute({ query: 'abc' }, context)).toEqual({ found: 10 });
    await fails(tool, { query: 'a' }, /search do not match the schema: query: /);
  });

  test('arktype', async () => {
    const tool = defineTool({
      ...words,
      input: type({ query: 'string', 'limit?': 'number.integer' }),
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ query: string; limit?: number }>();
        return args.query;
      },
    });
    expect(tool.definition.parameters).toMatchObject({ type: 'object', required: ['query'] });
    expect(await tool.execute({ query: 'abc' }, context)).toBe('abc');
    await fails(tool, { query: 7 }, /query/);
  });

  test('valibot, through its own converter', async () => {
    const input = toStandardJsonSchema(v.object({ query: v.string() }));
    const tool = defineTool({ ...words, input, execute: ({ query }) => query });
    expect(tool.definition.parameters).toMatchObject({ type: 'object', required: ['query'] });
    await fails(tool, {}, /query/);
  });

  test('valibot alone, with the JSON Schema beside it', async () => {
    const parameters = { type: 'object', properties: { query: { type: 'string' } } } as const;
    const tool = defineTool({
      ...words,
      input: v.object({ query: v.string() }),
      parameters,
      execute: ({ query }) => query,
    });
    expect(tool.definition.parameters).toEqual(parameters);
    expect(await tool.execute({ query: 'abc' }, context)).toBe('abc');
  });

  test('a library that cannot say its JSON Schema is told what to do', () => {
    const input: StandardSchema = {
      '~standard': { version: 1, vendor: 'mine', validate: (value) => ({ value }) },
    };
    const attempt = () => defineTool({ ...words, input, execute: () => 1 });
    expect(attempt).toThrow(PluginError);
    expect(attempt).toThrow(/mine does not generate.*`parameters` beside `input`/);
  });

  test('a check that takes its time is waited for', async () => {
    const validate = async (value: unknown) =>
      value === 1 ? { value } : { issues: [{ message: 'not now' }] };
    const input: StandardSchema = { '~standard': { version: 1, vendor: 'mine', validate } };
    const tool = defineTool({ ...words, input, parameters: { type: 'object' }, execute: () => 1 });
    await fails(tool, {}, /not now/);
  });
});

test('the gateway waits as long as a slow tool may take', () => {
  const slow = { ...words, parameters: { type: 'object' } as const, execute: () => 1 };
  expect(defineTool({ ...slow, timeout: 60 * 60_000 }).definition.timeout).toBe(61 * 60_000);
  expect(defineTool({ ...slow, timeout: '1h' }).definition.timeout).toBe(61 * 60_000);
  expect(defineTool({ ...slow, timeout: 1000 }).definition).not.toHaveProperty('timeout');
});

test('a timeout is milliseconds or a string with its unit', () => {
  const tool = { ...words, parameters: { type: 'object' } as const, execute: () => 1 };
  expect(defineTool({ ...tool, timeout: '30s' }).timeoutMs).toBe(30_000);
  expect(defineTool({ ...tool, timeout: '500 ms' }).timeoutMs).toBe(500);
  expect(() => defineTool({ ...tool, timeout: 'soon' })).toThrow(
    /the `timeout` of tool "search" .*, got "soon"/,
  );
});

describe('a tool written with JSON Schema', () => {
  test('has its arguments inferred', () => {
    defineTool({
      ...words,
      parameters: {
        type: 'object',
        properties: {
          query: { type: 'string' },
          mode: { enum: ['fast', 'slow'] },
          limit: { type: 'integer' },
          tags: { type: 'array', items: { type: 'string' } },
          place: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
          either: { type: ['string', 'null'] },
          free: { anyOf: [{ type: 'string' }] },
        },
        required: ['query', 'mode'],
      },
      execute: (args) => {
        expectTypeOf(args.query).toEqualTypeOf<string>();
        expectTypeOf(args.mode).toEqualTypeOf<'fast' | 'slow'>();
        expectTypeOf(args.limit).toEqualTypeOf<number | undefined>();
        expectTypeOf(args.tags).toEqualTypeOf<string[] | undefined>();
        expectTypeOf(args.place).toEqualTypeOf<{ city: string } | undefined>();
        expectTypeOf(args.either).toEqualTypeOf<string | null | undefined>();
        expectTypeOf(args.free).toEqualTypeOf<unknown>();
        return 1;
      },
    });
  });
  test('of which little is said gives a record', () => {
    expectTypeOf<FromSchema<{ type: 'object' }>>().toEqualTypeOf<Record<string, unknown>>();
  });
});
