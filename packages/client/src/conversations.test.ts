import { expect, test } from 'vitest';
import type { ChatMessage } from './chunk.js';
import { Conversations } from './conversations.js';

/** `u:`, `a:`, `s:` and words. */
const said = (...lines: string[]): ChatMessage[] =>
  lines.map((line) => ({
    role: line.startsWith('u:') ? 'user' : line.startsWith('a:') ? 'assistant' : 'system',
    content: line.slice(2),
  }));

test('what goes on where another call ended is the same conversation', () => {
  const memory = new Conversations();
  memory.remember('space_1', said('u:hi'), undefined);
  expect(memory.find(said('u:hi', 'a:hello', 'u:and?'), undefined)).toBe('space_1');
});
test('what the agent said does not matter', () => {
  const memory = new Conversations();
  memory.remember('space_1', said('u:hi', 'a:hello', 'u:and?'), undefined);
  expect(memory.find(said('u:hi', 'u:and?', 'a:changed', 'u:so'), undefined)).toBe('space_1');
});
test('the same messages again are a new conversation', () => {
  const memory = new Conversations();
  memory.remember('space_1', said('u:hi'), undefined);
  expect(memory.find(said('u:hi'), undefined)).toBeUndefined();
});
test('another beginning, system message or agent is another conversation', () => {
  const memory = new Conversations();
  memory.remember('space_1', said('s:be kind', 'u:hi'), 'helper');
  expect(memory.find(said('s:be kind', 'u:ho', 'u:and?'), 'helper')).toBeUndefined();
  expect(memory.find(said('s:be rude', 'u:hi', 'u:and?'), 'helper')).toBeUndefined();
  expect(memory.find(said('s:be kind', 'u:hi', 'u:and?'), 'other')).toBeUndefined();
});
test('the one with the most in common is continued, the newest of equals', () => {
  const memory = new Conversations();
  memory.remember('space_long', said('u:hi', 'u:and?'), undefined);
  memory.remember('space_short', said('u:hi'), undefined);
  memory.remember('space_newer', said('u:hi'), undefined);
  expect(memory.find(said('u:hi', 'u:and?', 'u:so'), undefined)).toBe('space_long');
  expect(memory.find(said('u:hi', 'u:but'), undefined)).toBe('space_newer');
});
test('sixty-four are remembered, the oldest is forgotten', () => {
  const memory = new Conversations();
  for (let index = 0; index <= 64; index += 1)
    memory.remember(`space_${index}`, said(`u:${index}`), undefined);
  expect(memory.find(said('u:0', 'u:x'), undefined)).toBeUndefined();
  expect(memory.find(said('u:1', 'u:x'), undefined)).toBe('space_1');
});
