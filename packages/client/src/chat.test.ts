import { expect, test } from 'vitest';
import { ToolgateClient } from './index.js';

test('a client with more tools than a message may name is the executor of the first 256', async () => {
  const posted: unknown[] = [];
  const client = new ToolgateClient({
    url: 'http://gateway.example',
    key: 'sk_x',
    fetch: async (_input, init) => {
      posted.push(JSON.parse(String(init?.body)));
      return Response.json({ code: 'NOT_FOUND', detail: 'no such agent', status: 404 }, { status: 404 });
    },
  });
  for (let index = 0; index < 300; index += 1) {
    const name = `tool_${index}`;
    client.registerTool({ name, description: 'A tool.', parameters: { type: 'object' }, execute: () => 1 });
  }
  await expect(client.chat('hello')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  const [{ clientTools, executor }] = posted as [{ clientTools: unknown[]; executor: { tools: string[] } }];
  expect(clientTools).toHaveLength(300);
  expect(executor.tools).toHaveLength(256);
});
