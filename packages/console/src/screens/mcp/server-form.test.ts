import { expect, test } from 'vitest';
import { configOf, formOf } from './server-form.ts';

test.each([
  {
    url: 'https://mcp.example.com/mcp',
    headers: { Authorization: '***' },
    timeout: 5,
    auth: { kind: 'none' },
  },
  { command: 'uvx', args: ['mcp-server-time', '--a b'], env: { TZ: 'UTC' }, review: 'always', cwd: '/srv' },
])('a configuration survives the form', (config) => {
  expect(configOf(formOf(config), config)).toEqual(config);
});

test('another kind leaves nothing of the old one behind', () => {
  const before = { url: 'https://a.example', headers: { A: 'b' }, auth: {}, tools: ['x'] };
  const form = { ...formOf(before), kind: 'command', command: ' uvx ' } as const;
  expect(configOf(form, before)).toEqual({ command: 'uvx', tools: ['x'] });
});
