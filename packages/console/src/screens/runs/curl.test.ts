import type { wire } from '@toolgate/client';
import { expect, test } from 'vitest';
import { curlOf } from './curl.ts';

const EVENTS = [
  { type: 'run-start', agent: 'shop' },
  { type: 'message', message: { parts: [{ type: 'text', text: "it's $HOME" }] } },
] as unknown as wire.Event[];

test('a message is one word of the shell, and the key a variable', () => {
  const command = curlOf('start', 'http://127.0.0.1:8787', 'run_1', EVENTS);
  expect(command).toContain(`it'\\''s $HOME`);
  expect(command).toContain('$TOOLGATE_SECRET_KEY');
  expect(command).toContain('"agent":"shop"');
});
