import { ToolgateClient } from '@toolgate/client';
import { expect, test } from 'vitest';
import { ChatStore } from './chat-store.js';

test('a page with more tools than a message may name is the executor of the first 256', async () => {
  const posted: Array<{ executor: { tools: string[] } }> = [];
  const client = new ToolgateClient({
    url: 'http://gateway.example',
    key: 'sk_x',
    fetch: async (input, init) => {
      const { pathname } = new URL(String(input));
      if (pathname === '/v1/spaces') return Response.json({ id: 'space_1', members: [] });
      if (!pathname.endsWith('/messages')) return Response.json({ status: 404 }, { status: 404 });
      posted.push(JSON.parse(String(init?.body)));
      return Response.json({ messageId: 'msg_1', seq: 1 });
    },
  });
  const chat = new ChatStore(client, {});
  chat.tools = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`tool_${index}`, () => 1]));
  await chat.send('hello');
  expect(posted[0]?.executor.tools).toHaveLength(256);
});
