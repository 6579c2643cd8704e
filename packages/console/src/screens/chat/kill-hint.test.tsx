// @vitest-environment happy-dom
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KillHint } from './kill-hint.tsx';

beforeEach(() => localStorage.clear());
afterEach(cleanup);

const hint = () => screen.queryByRole('complementary', { name: 'Something to try' });

test('suggests the command of the README, which ends one gateway and no other process', async () => {
  render(<KillHint />);
  const command = hint()?.querySelector('span code')?.textContent ?? '';
  expect(command).toMatch(/^kill -9 /);
  const readme = join(import.meta.dirname, '../../../../../README.md');
  expect(await readFile(readme, 'utf8')).toContain(`\n    ${command}\n`);
});

test('a hint that was dismissed does not come back', () => {
  const shown = render(<KillHint />);
  fireEvent.click(screen.getByRole('button', { name: 'Do not suggest this again' }));
  expect(hint()).toBeNull();
  shown.unmount();
  render(<KillHint />);
  expect(hint()).toBeNull();
});
