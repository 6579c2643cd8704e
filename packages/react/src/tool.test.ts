import { expect, expectTypeOf, test } from 'vitest';
import { handlerOf, tool } from './tool.js';

test('the input of a tool follows from its parameters', () => {
  const forecast = tool({
    description: 'Tells the weather.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    timeout: 1000,
    deprecated: 'Look out of the window.',
    execute: (input) => {
      expectTypeOf(input).toEqualTypeOf<{ city: string }>();
      // @ts-expect-error: the schema has no such member
      return input.town ?? input.city;
    },
  });
  const handler = handlerOf({ forecast }, 'forecast');
  expect(handler?.timeoutMs).toBe(1000);
  expect(handlerOf({ wait: { ...forecast, timeout: '2m' } }, 'wait')?.timeoutMs).toBe(120_000);
  expect(() => handlerOf({ wait: { ...forecast, timeout: 0 } }, 'wait')).toThrow(
    'the `timeout` of tool "wait"',
  );
  expect(handler?.execute({ city: 'Paris' }, {} as never)).toBe('Paris');
});
