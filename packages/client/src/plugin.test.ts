import { expect, expectTypeOf, test } from 'vitest';
import { ToolgateClient } from './client.js';
import { definePlugin, type ToolgatePlugin } from './plugin.js';

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city'],
} as const;

test('the arguments of executors follow from the parameters of their tools', () => {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1', key: 'sk' });
  client.use({
    name: 'weather',
    version: '1.0.0',
    tools: [
      { name: 'forecast', description: 'Tells the weather.', parameters },
      { name: 'sunrise', description: 'Tells the time.', parameters: { type: 'object', properties: {} } },
    ],
    executors: {
      forecast: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string; days?: number }>();
        // @ts-expect-error: the schema has no such member
        return args.town;
      },
      sunrise: () => '06:00',
    },
  });
  const plugin = definePlugin({
    name: 'tides',
    version: '1.0.0',
    tools: [{ name: 'tide', description: 'Tells the tide.', parameters }],
    executors: {
      tide: (args) => {
        expectTypeOf(args.days).toEqualTypeOf<number | undefined>();
        return args.city;
      },
    },
  });
  expectTypeOf(plugin).toEqualTypeOf<ToolgatePlugin>();
  client.use(plugin);
  expect(client.hasExecutor('forecast') && client.hasExecutor('tide')).toBe(true);
  definePlugin({
    name: 'moons',
    version: '1.0.0',
    tools: [{ name: 'moon', description: 'Tells the phase.', parameters }],
    // @ts-expect-error: it takes a number where the schema says text
    executors: { moon: (args: { city: number }) => args.city },
  });
});

test('a plugin whose tools are known when it runs takes any executor', () => {
  const plugin: ToolgatePlugin = {
    name: 'found',
    version: '1.0.0',
    tools: [{ name: 'found', description: 'Was found.', parameters: { type: 'object' } }],
    executors: { found: ({ city }: { city: string }) => city },
  };
  expect(plugin.executors).toHaveProperty('found');
});

test('a tool without execute is refused', () => {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1', key: 'sk' });
  const tool = { name: 'forecast', description: 'Tells the weather.', parameters };
  // @ts-expect-error: it has no execute
  expect(() => client.registerTool(tool)).toThrow(
    'tool "forecast" has no `execute`, which must be a function',
  );
  // @ts-expect-error: nor has this
  expect(() => client.registerTool({ definition: tool })).toThrow('tool "forecast" has no `execute`');
  expect(client.getClientToolDefinitions()).toEqual([]);
});

test('a number of milliseconds reaches the gateway with its unit', () => {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1', key: 'sk' });
  const tool = { description: 'Waits.', parameters: { type: 'object' }, timeout: 90_000 };
  const spelled = { ...tool, name: 'spelled', timeout: '2m' };
  const executors = { waits: () => 'over', spelled: () => 'over' };
  client.use({ name: 'waits', version: '1.0.0', tools: [{ ...tool, name: 'waits' }, spelled], executors });
  expect(client.getClientToolDefinitions().map(({ timeout }) => timeout)).toEqual(['90000ms', '2m']);
});
