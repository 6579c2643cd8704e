import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  ConflictError,
  createErrorResult,
  createVoiceFeedbackInjector,
  initializeToolRegistry,
  Permission,
  ToolCategory,
  ToolErrorCode,
  type ToolExecutionContext,
  ToolOrchestrator,
  type ToolPlugin,
  ToolPluginSchema,
} from '../src/index.js';
import { bare, type World, world } from './world.js';

const InputSchema = z.object({
  topic: z.string().min(1),
  format: z.enum(['brief', 'detailed']).optional(),
});

/** What the handler was told, by topic. */
const told = new Map<string, ToolExecutionContext>();

/** As a program with a registry of its own writes it: nothing here is annotated but the whole. */
const myPlugin: ToolPlugin = {
  id: 'my_tool',
  name: 'My Tool',
  category: ToolCategory.EDUCATIONAL,
  schema: InputSchema,

  handler: async (args, context) => {
    const { topic, format } = InputSchema.parse(args);
    told.set(topic, context);
    if (topic === 'nothing')
      return createErrorResult('my_tool', ToolErrorCode.EXECUTION_FAILED, 'Error message');
    return { success: true, data: { result: '...', itemCount: format === 'detailed' ? 5 : 3 } };
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
  uiComponent: () => null,
};

/** The plugin registered, its agent, and a space in which its handler is served. */
async function lesson(more: Partial<ToolPlugin> = {}): Promise<World & { sessionId: string }> {
  const made = await world(['Hello.']);
  const { client } = made;
  await initializeToolRegistry(client).register({ ...ToolPluginSchema.parse(myPlugin), ...more });
  await client.agents.put('maestro', { tools: [myPlugin.id], grants: myPlugin.permissions });
  const { id: sessionId } = await client.spaces.create({ agent: 'maestro' });
  await client.tools.serve(sessionId, { tools: { [myPlugin.id]: myPlugin.handler } }).ready();
  return { ...made, sessionId };
}

/** What the caller of a tool knows of it. */
const caller = (userId: string) => ({
  userId,
  maestroId: 'maestro',
  conversationHistory: [{ role: 'user', content: `I am ${userId}.` }],
  userProfile: { name: userId },
  activeTools: ['other'],
  grantedPermissions: [Permission.WRITE_CONTENT],
});

test('a call is confirmed with the values of its output and of its arguments', async () => {
  const { client, sessionId } = await lesson();
  const orchestrator = new ToolOrchestrator(client);
  const injector = createVoiceFeedbackInjector(client);
  const execute = (topic: string) =>
    orchestrator.execute('my_tool', { topic, format: 'detailed' }, { sessionId, ...caller('ann') });
  const call = await execute('Physics');
  expect(await injector.injectConfirmation('my_tool', call)).toBe('Foglio su Physics creato con 5 elementi');
  const { arguments: _, ...bare } = call;
  expect(await injector.injectConfirmation('my_tool', bare)).toBe('Foglio creato');
  expect(await injector.injectConfirmation('my_tool', await execute('nothing'))).toBeUndefined();
  const failed = createErrorResult('my_tool', ToolErrorCode.EXECUTION_FAILED, 'Error message');
  expect(await injector.injectConfirmation('my_tool', failed)).toBeUndefined();
});

test('a handler is told what the caller of its call knows, and nothing of other calls', async () => {
  const { client, another, sessionId } = await lesson();
  const orchestrator = new ToolOrchestrator(client);
  const users = ['ann', 'bob', 'cem'];
  await Promise.all(
    users.map((user) => orchestrator.execute('my_tool', { topic: user }, { sessionId, ...caller(user) })),
  );
  for (const user of users)
    expect(told.get(user)).toMatchObject({ ...caller(user), sessionId, conversationId: sessionId });

  // Of a call that another process has made, the handler knows where it belongs.
  await new ToolOrchestrator(another()).execute(
    'my_tool',
    { topic: 'afar' },
    { sessionId, ...caller('dan') },
  );
  const afar = told.get('afar');
  expect(afar).toMatchObject({ sessionId, conversationId: sessionId, spaceId: sessionId });
  for (const member of Object.keys(caller('dan'))) expect(afar).not.toHaveProperty(member);
});

test('a handler is told the context of a call that waited for a yes', async () => {
  const { client, sessionId } = await lesson({ approval: 'always' });
  const orchestrator = new ToolOrchestrator(client);
  const asked = await orchestrator.execute('my_tool', { topic: 'later' }, { sessionId, ...caller('ann') });
  expect(told.has('later')).toBe(false);
  const approvalId = asked.pending?.approvals[0]?.approvalId ?? '';
  const ended = client.runs.subscribe(asked.runId);
  await client.approvals.decide(approvalId, { approved: true });
  for await (const event of ended) if (event.type === 'run-finish') break;
  expect(told.get('later')).toMatchObject(caller('ann'));
});

test('a handler of a call that a model has made reads what was said, and whom the call is for', async () => {
  const { client, gateway, another } = await world([
    { text: 'I look.', calls: [{ name: 'look' }] },
    'Seen.',
    { calls: [{ name: 'look' }] },
    'Again.',
  ]);
  const read: unknown[] = [];
  const look = async (_: unknown, { history, member }: ToolExecutionContext) => {
    read.push([await history(), await history({ messages: 1 }), await member()]);
    return 'seen';
  };
  await client.agents.put('watcher', { tools: [bare('look')] });
  const { id: spaceId } = await client.spaces.create({ agent: 'watcher' });
  await client.spaces.putMember(spaceId, 'ann', { role: 'pupil', grants: ['write_content'] });
  await client.tools.serve(spaceId, { tools: { look } }).ready();
  const ended = async (runId: string | null | undefined) => {
    for await (const { type } of client.runs.subscribe(runId ?? '')) if (type === 'run-finish') break;
  };
  const access = { key: undefined, publicKey: gateway.publicKey, token: gateway.token('ann') };
  const ann = another(access);
  await ended((await ann.spaces.post(spaceId, 'What is there?')).runId);
  const from = expect.stringMatching(/^ent_/);
  const said = [
    { role: 'user', text: 'What is there?', from },
    { role: 'assistant', text: 'I look.' },
  ];
  const pupil = { entity: { subject: 'ann' }, role: 'pupil', grants: ['write_content'] };
  expect(read).toMatchObject([[said, [said[1]], pupil]]);
  // A backend's own message is for nobody in particular.
  await ended((await client.spaces.post(spaceId, 'And now?')).runId);
  const more = [
    { role: 'assistant', text: 'I look.\n\nSeen.' },
    { role: 'user', text: 'And now?' },
  ];
  expect(read[1]).toEqual([[said[0], ...more], [more[1]], undefined]);
});

test('a page reads what its user may see, and no members', async () => {
  const { client, gateway, another } = await world([{ calls: [{ name: 'look' }] }, 'Seen.']);
  await client.agents.put('watcher', { tools: [bare('look')] });
  const ann = another({ key: undefined, publicKey: gateway.publicKey, token: gateway.token('ann') });
  const { id: spaceId } = await client.spaces.create({ agent: 'watcher', members: ['ann'] });
  const read: unknown[] = [];
  const look = async (_: unknown, { history, member }: ToolExecutionContext) => {
    read.push(await history(), await member().catch(({ code }) => code));
    return 'seen';
  };
  await ann.tools.serve(spaceId, { tools: { look } }).ready();
  const { runId } = await ann.spaces.post(spaceId, 'What is there?');
  for await (const { type } of client.runs.subscribe(runId ?? '')) if (type === 'run-finish') break;
  expect(read).toEqual([[{ role: 'user', text: 'What is there?', from: expect.any(String) }], 'FORBIDDEN']);
});

test('an id that is taken is a conflict', async () => {
  const { client } = await world(['Hello.']);
  await client.registry.register(myPlugin);
  await expect(client.registry.register(myPlugin)).rejects.toThrow(ConflictError);
});
