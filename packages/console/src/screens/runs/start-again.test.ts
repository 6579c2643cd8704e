import type { Message } from '@toolgate/react';
import { expect, test } from 'vitest';
import { historyBefore } from './start-again.ts';

function message(id: string, role: Message['role'], text: string): Message {
  return { id, role, state: 'done', time: '', parts: [{ type: 'text', id: '0', text, streaming: false }] };
}

const MESSAGES = [
  message('msg_1', 'user', 'Hello'),
  message('msg_2', 'assistant', 'Good day'),
  message('msg_3', 'notice', 'A plan was due'),
  message('msg_4', 'user', 'Again'),
];

test('what was said before a message is told, without notices', () => {
  expect(historyBefore(MESSAGES, 'msg_4')).toEqual([
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Good day' },
  ]);
});

test('nothing was said before the first message, or before one that is unknown', () => {
  expect(historyBefore(MESSAGES, 'msg_1')).toEqual([]);
  expect(historyBefore(MESSAGES, 'msg_9')).toEqual([]);
});
