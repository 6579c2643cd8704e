import { expect, test } from 'vitest';
import { z } from 'zod';
import { ToolPluginSchema } from './tool-plugin-schema.js';
import { Permission, ToolCategory } from './tool-vocabulary.js';

const myPlugin = {
  id: 'my_tool',
  name: 'My Tool',
  category: ToolCategory.EDUCATIONAL,
  schema: z.object({ topic: z.string().min(1), format: z.enum(['brief', 'detailed']).optional() }),
  handler: async () => ({ success: true, data: { result: '...' } }),
  voicePrompt: {
    template: 'Creare un foglio su {topic}?',
    requiresContext: ['topic'],
    fallback: 'Creare un nuovo foglio?',
  },
  voiceFeedback: 'Foglio creato',
  voiceEnabled: true,
  triggers: ['mio_tool', 'crea', 'foglio'],
  prerequisites: [],
  permissions: [Permission.WRITE_CONTENT, Permission.VOICE_OUTPUT],
};

test('a plugin that can be registered is returned as it is', () => {
  expect(ToolPluginSchema.parse(myPlugin)).toBe(myPlugin);
  expect(ToolPluginSchema.safeParse({ id: 'bare' })).toMatchObject({ success: true });
  const prerequisites = ['verify', { tool: 'verify', scope: 'space', within: '10m' }];
  expect(ToolPluginSchema.safeParse({ id: 'later', prerequisites }).success).toBe(true);
});

test('all problems are told at once, each with its place', () => {
  const wrong = {
    ...myPlugin,
    id: 'My tool!',
    handler: 'run',
    voicePrompt: { requiresContext: ['topic'] },
    voiceFeedback: { template: 'Fatto', requiresContext: 'topic' },
    triggers: 'crea',
    permissions: [1],
  };
  const checked = ToolPluginSchema.safeParse(wrong);
  expect(checked.success ? [] : checked.error.errors.map(({ pointer }) => pointer)).toEqual([
    '/id',
    '/handler',
    '/voicePrompt',
    '/voiceFeedback',
    '/triggers',
    '/permissions',
  ]);
  expect(() => ToolPluginSchema.parse(wrong)).toThrow('/triggers: expected a list of texts');
  expect(() => ToolPluginSchema.parse({})).toThrow('/id');
  expect(() => ToolPluginSchema.parse(undefined)).toThrow('expected an object');
});
