import { expect, test } from 'vitest';
import { ToolgateClient, ValidationError } from '../src/index.js';
import { bare, world } from './world.js';

const many = (count: number) => Array.from({ length: count }, (_, index) => bare(`tool_${index}`));

test('a deprecated tool warns with its result, and its use is counted', async () => {
  const { client } = await world([{ calls: [{ name: 'fax' }] }, 'Sent.']);
  client.registerTool({
    ...bare('fax'),
    version: '2',
    deprecated: 'Use mail.',
    timeout: 30_000,
    execute: () => 'sent',
  });
  const { toolResults, runId } = await client.chat('fax it');
  expect(toolResults).toMatchObject([{ result: 'sent', warning: expect.stringContaining('Use mail.') }]);
  const events = client.runs.subscribe(runId);
  for await (const event of events) {
    if (event.type !== 'run-start') continue;
    expect(event.clientTools).toMatchObject([{ name: 'fax', version: '2', deprecated: 'Use mail.' }]);
    break;
  }
  expect((await client.tools.usage('fax')).calls).toBe(1);
});

test('a timeout is milliseconds: the run waits no longer', async () => {
  const { client } = await world([{ calls: [{ name: 'wait' }] }, 'Over.']);
  client.use({
    name: 'waits',
    version: '1.0.0',
    tools: [{ ...bare('wait'), timeout: 200 }],
    executors: { wait: () => new Promise(() => {}) },
  });
  const { toolResults } = await client.chat('wait');
  expect(toolResults[0]?.error).toContain('no client answered wait in time');
});

test('a secret key brings 64 tools, a public one 32, and the error names what changes it', async () => {
  const { client, gateway } = await world(['Hello.']);
  const user = new ToolgateClient({
    url: gateway.url,
    publicKey: gateway.publicKey,
    token: gateway.token('ada'),
  });
  await client.agents.put('default', { access: 'public', instructions: 'help' });
  const start = (who: ToolgateClient, count: number) =>
    who.runs.start({ message: 'hi', clientTools: many(count) });
  await start(client, 64);
  await start(user, 32);
  const told = async (refused: Promise<unknown>): Promise<string> => {
    const error = await refused.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ValidationError);
    return (error as ValidationError).errors?.[0]?.message ?? '';
  };
  expect(await told(start(client, 65))).toMatch(/at most 64 .*`only`.*`client_tools\.tools_max`/);
  expect(await told(start(user, 33))).toMatch(/at most 32 .*`only`.*`client_tools\.public_tools_max`/);
});

test('only offers some of the tools, and the settings change how many', async () => {
  const config = '[client_tools]\ntools_max = 2\n';
  const { client, model } = await world(['Hello.'], {}, config);
  for (const tool of many(3)) client.registerTool({ ...tool, execute: () => 'x' });
  await expect(client.chat('hi')).rejects.toThrow(ValidationError);
  await expect(client.chat({ message: 'hi', only: ['tool_9'] })).rejects.toThrow(
    '`only` names "tool_9", which is not a tool of this client',
  );
  await client.chat({ message: 'hi', only: ['tool_0', 'tool_2'] });
  const offered = model.requests[0]?.tools?.map((tool) => tool.function.name);
  expect(offered?.filter((name) => name.startsWith('tool_'))).toEqual(['tool_0', 'tool_2']);
});
