import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  createErrorResult,
  createVoiceFeedbackInjector,
  initializeToolRegistry,
  Permission,
  ToolCategory,
  type ToolDataChannelMessage,
  ToolErrorCode,
  ToolOrchestrator,
  ToolPluginSchema,
} from '../src/index.js';
import { type World, world } from './world.js';

const InputSchema = z.object({
  topic: z.string().min(1),
  format: z.enum(['brief', 'detailed']).optional(),
});

/** A plugin as a registry of one's own has it: a zod schema, a handler, Italian texts. */
const myPlugin = {
  id: 'my_tool',
  name: 'My Tool',
  category: ToolCategory.EDUCATIONAL,
  schema: InputSchema,
  handler: async (args: unknown) => {
    const { topic } = InputSchema.parse(args);
    if (topic === 'x')
      return createErrorResult('my_tool', ToolErrorCode.VALIDATION_FAILED, 'Input validation failed', {
        field: 'topic',
        reason: 'too short',
      });
    if (topic === 'y') return { success: false, error: 'Error message' };
    return { success: true, data: { topic, itemCount: 3 } };
  },
  voicePrompt: {
    template: 'Creare un foglio su {topic}?',
    requiresContext: ['topic'],
    fallback: 'Creare un nuovo foglio?',
  },
  voiceFeedback: {
    template: 'Foglio su {topic} creato con {itemCount} elementi',
    requiresContext: ['topic', 'itemCount'],
    fallback: 'Foglio creato',
  },
  voiceEnabled: true,
  triggers: ['mio_tool', 'crea', 'foglio'],
  prerequisites: [],
  permissions: [Permission.WRITE_CONTENT, Permission.VOICE_OUTPUT],
};

/** The plugin registered, its agent, and a space in which its handler is served. */
async function lesson(more: Record<string, unknown> = {}): Promise<World & { sessionId: string }> {
  const made = await world(['Hello.']);
  const { client } = made;
  await initializeToolRegistry(client).register(ToolPluginSchema.parse({ ...myPlugin, ...more }));
  await client.agents.put('maestro', { tools: ['my_tool'], grants: myPlugin.permissions });
  const { id: sessionId } = await client.spaces.create({ agent: 'maestro' });
  await client.tools.serve(sessionId, { tools: { my_tool: myPlugin.handler } }).ready();
  return { ...made, sessionId };
}

/** Messages, and a promise of the first of a type. */
function notebook() {
  const messages: ToolDataChannelMessage[] = [];
  const waiting: Array<{ type: string; resolve: (message: ToolDataChannelMessage) => void }> = [];
  return {
    messages,
    broadcast: (message: ToolDataChannelMessage) => {
      messages.push(message);
      for (const { type, resolve } of waiting) if (type === message.type) resolve(message);
    },
    first: (type: string): Promise<ToolDataChannelMessage> =>
      new Promise((resolve) => {
        const known = messages.find((message) => message.type === type);
        if (known) resolve(known);
        else waiting.push({ type, resolve });
      }),
  };
}

test('a program that was written for a registry of its own runs', async () => {
  const { client, sessionId } = await lesson();
  const registry = client.registry;
  expect(initializeToolRegistry(client)).toBe(registry);
  const orchestrator = new ToolOrchestrator(registry);
  const book = notebook();
  orchestrator.setBroadcaster(book);
  const context = {
    userId: 'ann',
    sessionId,
    maestroId: 'maestro',
    conversationHistory: [],
    userProfile: {},
    activeTools: [],
    grantedPermissions: myPlugin.permissions,
  };
  expect(orchestrator.validatePrerequisites(myPlugin, context)).toBe(true);
  const result = await orchestrator.execute('my_tool', { topic: 'Physics' }, context);
  expect(result).toMatchObject({
    status: 'completed',
    output: { success: true, data: { topic: 'Physics' } },
  });
  const completed = await book.first('TOOL_COMPLETED');
  expect(completed).toMatchObject({
    toolId: 'my_tool',
    payload: { voice: { text: 'Foglio su Physics creato con 3 elementi' } },
  });
  expect(book.messages.map(({ type }) => type)).toEqual([
    'TOOL_PROPOSED',
    'TOOL_EXECUTING',
    'TOOL_COMPLETED',
  ]);
  const injector = createVoiceFeedbackInjector(registry);
  expect(await injector.injectProposal('my_tool', { topic: 'Gravity' })).toBe('Creare un foglio su Gravity?');
  expect((await orchestrator.getToolsByCategory(ToolCategory.EDUCATIONAL)).map(({ id }) => id)).toEqual([
    'my_tool',
  ]);
});

test('a tool whose start is not in the log is broadcast as executing too', async () => {
  const { client } = await lesson();
  const fixed = {
    name: 'fixed',
    description: 'Always the same.',
    executionType: 'basic',
    execution: { mode: 'static', output: { pages: 3 } },
  };
  await client.agents.put('maestro', { tools: [fixed] });
  const orchestrator = new ToolOrchestrator(client);
  const book = notebook();
  orchestrator.setBroadcaster(book);
  await orchestrator.execute('fixed', {}, { maestroId: 'maestro' });
  const completed = await book.first('TOOL_COMPLETED');
  expect(book.messages.map(({ type }) => type)).toEqual(['TOOL_EXECUTING', 'TOOL_COMPLETED']);
  expect(book.messages[0]?.payload?.toolCallId).toBe(completed.payload?.toolCallId);
});

test('steps that follow a later yes are broadcast too, and a call without a broadcaster is one', async () => {
  const { client, sessionId } = await lesson({ approval: 'always' });
  const orchestrator = new ToolOrchestrator(client);
  const { broadcast, first, messages } = notebook();
  orchestrator.setBroadcaster(broadcast);
  const context = { sessionId, maestroId: 'maestro' };
  const asked = await orchestrator.execute('my_tool', { topic: 'Gravity' }, context);
  expect(asked.pending?.approvals).toHaveLength(1);
  const proposed = await first('TOOL_PROPOSED');
  expect(proposed.payload).toMatchObject({
    runId: asked.runId,
    voice: { text: 'Creare un foglio su Gravity?' },
  });
  await client.approvals.decide(String(proposed.payload?.approvalId), { approved: true });
  await first('TOOL_COMPLETED');
  expect(messages.map(({ type }) => type)).toEqual([
    'TOOL_PROPOSED',
    'TOOL_ACCEPTED',
    'TOOL_EXECUTING',
    'TOOL_COMPLETED',
  ]);
  orchestrator.setBroadcaster(undefined);
  await orchestrator.execute('my_tool', { topic: 'Gravity' }, context);
  expect((await client.runs.list({ space: sessionId })).runs).toHaveLength(2);
  expect(messages).toHaveLength(4);
});

test('an error that a handler returns is the error of the call, and nothing is confirmed aloud', async () => {
  const { client, sessionId } = await lesson();
  const orchestrator = new ToolOrchestrator(client);
  const book = notebook();
  orchestrator.setBroadcaster(book);
  const context = { sessionId, maestroId: 'maestro' };
  const result = await orchestrator.execute('my_tool', { topic: 'x' }, context);
  expect(result.status).toBe('failed');
  expect(result.error?.message).toContain('Input validation failed');
  expect(result.error?.message).toContain('too short');
  const failed = await book.first('TOOL_ERROR');
  expect(failed.payload?.voice).toBeUndefined();
  expect(book.messages.map(({ type }) => type)).not.toContain('TOOL_COMPLETED');
  const plain = await orchestrator.execute('my_tool', { topic: 'y' }, context);
  expect(plain).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('Error message') },
  });
});

test('prerequisites and metadata of a tool are told without executing it', async () => {
  const { client } = await world(['Hello.']);
  const orchestrator = new ToolOrchestrator(client);
  const later = { prerequisites: ['first', { tool: 'second', scope: 'space' }] };
  expect(orchestrator.validatePrerequisites(later, { activeTools: ['first'] })).toBe(false);
  expect(orchestrator.validatePrerequisites(later, { activeTools: ['second', 'first'] })).toBe(true);
  expect(orchestrator.validatePrerequisites(later)).toBe(false);
  await client.registry.register({ id: 'silent', voice: { prompt: 'Sì?', enabled: false } });
  await client.registry.register({ id: 'mute', voicePrompt: 'Sì?', voiceEnabled: false });
  await client.registry.register({ id: 'loud', voicePrompt: 'Sì?' });
  const enabled = async (id: string) => (await orchestrator.getToolMetadata(id))?.voiceEnabled;
  expect([await enabled('silent'), await enabled('mute'), await enabled('loud')]).toEqual([
    false,
    false,
    true,
  ]);
});
