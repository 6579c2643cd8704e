import { expect, test } from 'vitest';
import { newMessageId } from './message-id.js';

test('message ids have the form that the gateway takes, and differ', () => {
  const ids = Array.from({ length: 100 }, newMessageId);
  for (const id of ids) expect(id).toMatch(/^msg_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
  expect(new Set(ids).size).toBe(ids.length);
});
