import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import {
  ConflictError,
  createVoiceFeedbackInjector,
  ToolgateClient,
  ToolOrchestrator,
} from '@toolgate/client';
import { type Gateway, startGateway } from '@toolgate/test-support';
import { afterAll, beforeAll, expect, test } from 'vitest';

let gateway: Gateway;
let client: ToolgateClient;
beforeAll(async () => {
  gateway = await startGateway();
  client = new ToolgateClient({ url: gateway.url, key: gateway.secretKey });
});
afterAll(() => gateway.stop());

/** Runs the example while this is typed, and gives all that it prints, and its exit code. */
async function start(words: string[], typed: string): Promise<{ text: string; code: number }> {
  const tutor = spawn(process.execPath, [fileURLToPath(new URL('start.js', import.meta.url)), ...words], {
    env: { ...process.env, TOOLGATE_URL: gateway.url, TOOLGATE_SECRET_KEY: gateway.secretKey },
  });
  let text = '';
  for (const output of [tutor.stdout, tutor.stderr])
    output.on('data', (piece: Buffer) => {
      text += piece;
    });
  // One that has ended before it reads does not matter here.
  tutor.stdin.on('error', () => {});
  tutor.stdin.end(typed);
  const [code] = await once(tutor, 'close');
  return { text, code };
}

/** Runs the example, and gives what it says. */
async function run(...words: string[]): Promise<string> {
  const { text, code } = await start(words, '');
  expect(code, text).toBe(0);
  return text;
}

test('the tool is proposed aloud, approved, executed and confirmed aloud', async () => {
  const said = await run('vorrei un fogilo', 'la luce');
  expect(said).toContain('"vorrei un fogilo" → my_tool, by the trigger "foglio"');
  expect(said).toContain('🔊 Creare un foglio su la luce?');
  expect(said).toContain('🔊 Foglio su la luce creato con 3 elementi');
});

test('a no ends it, and other words find nothing', async () => {
  const said = await run('crea qualcosa', 'la luce', 'no');
  expect(said).toContain('🔊 Creare un foglio su la luce?');
  expect(said).toContain('🔊 Va bene, niente foglio.');
  expect(said).not.toContain('creato');
  expect(await run('buongiorno')).toContain('no tool for "buongiorno"');
});

test('an answer that is neither yes nor no is asked for again, and silence withdraws the call', async () => {
  const { text: asked, code } = await start(['crea', 'la luce', 'forse'], 'boh\nsì\n');
  expect(code, asked).toBe(0);
  expect(asked.match(/Dimmi sì o no/g)).toHaveLength(2);
  expect(asked).toContain('🔊 Foglio su la luce creato con 3 elementi');

  const silent = await run('crea', 'la luce', 'forse');
  expect(silent).toContain('🔊 Non sento niente, lascio stare.');
  expect(silent).not.toContain('Va bene, niente foglio');
  const { runs } = await client.runs.list({ agent: 'tutor', limit: 1 });
  expect(runs[0]?.status).toBe('cancelled');
});

test('an empty topic is told, without a stack trace', async () => {
  const { text, code } = await start(['crea', ' '], '');
  expect(code).toBe(1);
  expect(text).toBe('the topic is empty, expected one such as "la gravità"\n');
});

test('the registry, the orchestrator and the injector know the tool', async () => {
  const { registry } = client;
  expect(await registry.has('my_tool')).toBe(true);
  expect((await registry.getByTrigger('FOGLIO')).map(({ name }) => name)).toEqual(['my_tool']);
  expect((await registry.getByCategory('EDUCATIONAL')).length).toBe(1);
  expect((await registry.getByPermission('VOICE_OUTPUT')).length).toBe(1);
  const another = { id: 'my_tool', description: 'Another.' };
  await expect(registry.register(another)).rejects.toThrow(ConflictError);

  const orchestrator = new ToolOrchestrator(client);
  expect(await orchestrator.getToolMetadata('my_tool')).toMatchObject({
    name: 'My Tool',
    voiceEnabled: true,
  });
  const injector = createVoiceFeedbackInjector(client);
  expect(await injector.injectProposal('my_tool')).toBe('Creare un nuovo foglio?');
  expect(await injector.injectConfirmation('my_tool', { data: { topic: 'la luce', itemCount: 2 } })).toBe(
    'Foglio su la luce creato con 2 elementi',
  );
  expect((await injector.getContextualTriggers({ topic: 'Energia', keywords: ['foglio'] }))[0]?.name).toBe(
    'my_tool',
  );

  expect(await registry.unregister('my_tool')).toBe(true);
  expect(await registry.unregister('my_tool')).toBe(false);
  expect(await registry.get('my_tool')).toBeUndefined();
  await registry.register({ id: 'other', description: 'Another.' });
  expect(await registry.clear()).toBe(1);
  expect(await registry.getAll()).toEqual([]);
});

test('a decision is remembered, listed and revoked', async () => {
  await client.registry.replace({
    id: 'sheet',
    description: 'Makes a sheet.',
    approval: 'first-in-space',
    executionType: 'basic',
    execution: { mode: 'pass-through' },
  });
  await client.agents.put('remembering', { tools: ['sheet'] });
  const { id: spaceId } = await client.spaces.create({ agent: 'remembering' });
  const call = () => client.tools.call('sheet', { agent: 'remembering', spaceId });
  const asked = (await call()).pending?.approvals[0];
  const decided = await client.approvals.decide(asked?.approvalId ?? '', { approved: true });
  expect(decided.remembered).toBe(true);
  expect((await call()).status).toBe('completed');
  const [consent] = await client.consents.list(spaceId);
  expect(consent).toMatchObject({ toolName: 'sheet', agent: 'remembering' });
  await client.consents.revoke(spaceId, consent?.id ?? '');
  expect((await call()).pending?.approvals.length).toBe(1);
});
