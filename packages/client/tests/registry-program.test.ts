import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  createErrorResult,
  createToolMessage,
  createVoiceFeedbackInjector,
  deserializeMessage,
  initializeToolRegistry,
  Permission,
  serializeMessage,
  ToolCategory,
  type ToolDataChannelMessage,
  ToolErrorCode,
  ToolEventType,
  ToolOrchestrator,
  type ToolPlugin,
  ToolPluginSchema,
  ToolRegistry,
} from '../src/index.js';
import { type World, world } from './world.js';

// The lines of a program that was written for a registry in its own process, as they stand: `await` and the import are all
// that differs. tsc reads them, and the gateway that the environment names executes them.

const InputSchema = z.object({
  topic: z.string().min(1),
  format: z.enum(['brief', 'detailed']).optional(),
});

export const myPlugin: ToolPlugin = {
  id: 'my_tool',
  name: 'My Tool',
  category: ToolCategory.EDUCATIONAL,
  schema: InputSchema,

  // biome-ignore lint/correctness/noUnusedFunctionParameters: the line as it stands
  handler: async (args, context) => {
    // biome-ignore lint/correctness/noUnusedVariables: the line as it stands
    const { topic, format } = InputSchema.parse(args);
    try {
      // Implementation here
      return { success: true, data: { result: '...' } };
      // biome-ignore lint/correctness/noUnusedVariables: the line as it stands
    } catch (error) {
      return { success: false, error: 'Error message' };
    }
  },

  // Simple string or template with {variable} substitution
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
  prerequisites: [], // Optional: require other tools active
  permissions: [Permission.WRITE_CONTENT, Permission.VOICE_OUTPUT],
};

/** Handlers as the error patterns have them. */
const patterns = (validInput: boolean) => {
  if (!validInput) {
    return createErrorResult('my_tool', ToolErrorCode.VALIDATION_FAILED, 'Input validation failed', {
      field: 'topic',
      reason: 'too short',
    });
  }

  try {
    throw new Error('no work');
  } catch (error) {
    return createErrorResult(
      'my_tool',
      ToolErrorCode.EXECUTION_FAILED,
      error instanceof Error ? error.message : 'Unknown error',
    );
  }
};

afterEach(() => vi.unstubAllEnvs());

/** Another tool, `plugin_id`, which needs `my_tool` before; the agent of both; and a space, in which `my_tool` is served. */
async function lesson({ client }: World): Promise<string> {
  const demo = { id: 'plugin_id', executionType: 'basic', execution: { mode: 'static', output: {} } };
  await client.registry.register({
    ...demo,
    ...{ name: 'Demo', category: ToolCategory.EDUCATIONAL, triggers: ['mostra demo', 'energia'] },
    ...{ voicePrompt: 'Mostrare {topic}?', voiceFeedback: 'Fatto', prerequisites: ['my_tool'] },
    permissions: [Permission.VOICE_OUTPUT],
  });
  const tools = ['my_tool', 'plugin_id'];
  await client.agents.put('maestro', { tools, grants: [...(myPlugin.permissions ?? [])] });
  const { id: sessionId } = await client.spaces.create({ agent: 'maestro' });
  await client.tools.serve(sessionId, { tools: { my_tool: myPlugin.handler } }).ready();
  return sessionId;
}

test('a program that was written for a registry in its process runs on the gateway of the environment', async () => {
  const made = await world(['Hello.']);
  vi.stubEnv('TOOLGATE_URL', made.gateway.url);
  vi.stubEnv('TOOLGATE_SECRET_KEY', made.gateway.secretKey);
  {
    const registry = initializeToolRegistry();
    await registry.register(myPlugin);

    // Use with orchestrator
    const orchestrator = new ToolOrchestrator(registry);
    expect((await orchestrator.getToolMetadata('my_tool'))?.name).toBe('My Tool');
  }
  const sessionId = await lesson(made);

  const registry = ToolRegistry.getInstance();
  {
    const plugin = await registry.get('plugin_id');
    expect(plugin?.name).toBe('plugin_id');
  }
  const found: unknown[] = [];
  if (await registry.has('plugin_id')) {
    found.push('plugin_id');
  }
  const all = await registry.getAll();
  const matches = await registry.getByTrigger('demo');
  const educational = await registry.getByCategory(ToolCategory.EDUCATIONAL);
  const voiceTools = await registry.getByPermission(Permission.VOICE_OUTPUT);
  for (const list of [all, matches, educational, voiceTools]) found.push(list.length);
  expect(found).toEqual(['plugin_id', 2, 1, 2, 2]);

  const broadcast: ToolDataChannelMessage[] = [];
  const broadcaster = (message: ToolDataChannelMessage) => void broadcast.push(message);
  const { userId, maestroId, conversationHistory, userProfile, activeTools, grantedPermissions } = {
    ...{ userId: 'ann', maestroId: 'maestro', conversationHistory: [], userProfile: {} },
    ...{ activeTools: [], grantedPermissions: [Permission.VOICE_OUTPUT] },
  };
  const context = { userId, sessionId, maestroId };

  const orchestrator = new ToolOrchestrator(registry);
  orchestrator.setBroadcaster(broadcaster);
  const result = await orchestrator.execute(
    'plugin_id',
    { topic: 'Physics', type: 'simulation' },
    { userId, sessionId, maestroId, conversationHistory, userProfile, activeTools, grantedPermissions },
  );
  expect(result.error?.code).toBe('PREREQUISITES_NOT_MET');
  const plugin = await registry.get('plugin_id');
  const valid = orchestrator.validatePrerequisites(plugin, context);
  expect(valid).toBe(false);
  expect(orchestrator.validatePrerequisites(myPlugin, context)).toBe(true);
  const metadata = await orchestrator.getToolMetadata('plugin_id');
  expect(metadata).toMatchObject({ name: 'Demo', prerequisites: ['my_tool'] });
  const demos = await orchestrator.getToolsByCategory(ToolCategory.EDUCATIONAL);
  expect(demos.map(({ id }) => id)).toEqual(['my_tool', 'plugin_id']);

  {
    const injector = createVoiceFeedbackInjector();
    const proposal = await injector.injectProposal('plugin_id', { topic: 'Gravity', subject: 'Physics' });
    expect(proposal).toBe('Mostrare Gravity?');
    const done = await orchestrator.execute('my_tool', { topic: 'Physics' }, context);
    expect(await injector.injectConfirmation('my_tool', done)).toBe('Foglio creato');
    const feedback = await injector.injectConfirmation('plugin_id', result);
    expect(feedback).toBeUndefined();
    const tools = await injector.getContextualTriggers({ topic: 'Energia', keywords: ['conservation'] });
    expect(tools.map(({ name }) => name)).toEqual(['plugin_id']);
  }

  await registry.unregister('plugin_id');
  expect(ToolPluginSchema.parse(myPlugin)).toMatchObject({ id: 'my_tool' });
  await ToolRegistry.getInstance().clear();
  await registry.clear();
  expect(await registry.getAll()).toEqual([]);
});

test('messages and error results are made with the lines of that program', () => {
  const message: ToolDataChannelMessage = {
    type: ToolEventType.TOOL_PROPOSED,
    toolId: 'demo_id',
    payload: {},
    timestamp: 1,
  };
  const json = serializeMessage(message);
  {
    const msg = deserializeMessage(json);
    expect(msg).toEqual(message);
  }
  const msg = createToolMessage(ToolEventType.TOOL_COMPLETED, 'demo_id', { success: true });
  expect(msg).toMatchObject({ type: 'TOOL_COMPLETED', payload: { success: true } });
  expect([patterns(false), patterns(true)]).toMatchObject([{ success: false }, { success: false }]);
});
