import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ToolgateClient } from '../client.js';
import { type FileSystemOptions, fileSystemPlugin } from './fs.js';

// As they are, unless a test acts in between.
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return { ...real, open: vi.fn(real.open), readdir: vi.fn(real.readdir) };
});

let folder = '';
let root = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolgate-fs-'));
  root = join(folder, 'shared');
  await mkdir(join(root, 'sub'), { recursive: true });
  await writeFile(join(folder, 'secret.txt'), 'secret');
  await writeFile(join(root, 'a.txt'), 'hello');
});
afterEach(() => rm(folder, { recursive: true }));

function run(
  name: string,
  args: Record<string, unknown>,
  options: Partial<FileSystemOptions> = {},
): Promise<unknown> {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1' }).use(
    fileSystemPlugin({ root, ...options }),
  );
  return client.execute({ name, arguments: args });
}

test('files are read, written and listed', async () => {
  expect(await run('read_file', { path: 'a.txt' })).toEqual({ path: 'a.txt', content: 'hello' });
  expect(await run('write_file', { path: 'new/deep/b.txt', content: 'ü' })).toEqual({
    path: 'new/deep/b.txt',
    bytes: 2,
  });
  expect(await readFile(join(root, 'new/deep/b.txt'), 'utf8')).toBe('ü');
  expect(await run('write_file', { path: 'a.txt', content: 'bye' })).toMatchObject({ bytes: 3 });
  expect(await run('list_directory', {})).toEqual({
    path: '.',
    entries: [
      { name: 'a.txt', type: 'file' },
      { name: 'new', type: 'folder' },
      { name: 'sub', type: 'folder' },
    ],
    truncated: false,
  });
});

const OUTSIDE = [
  '../secret.txt',
  'sub/../../secret.txt',
  '/etc/passwd',
  '..',
  'sub/..\\..\\x',
  'C:\\x',
  '\\\\host\\x',
  'a\0b',
];
test.each(OUTSIDE)('%j does not lead out', async (path) => {
  await expect(run('read_file', { path })).rejects.toThrow(/outside the shared folder/);
  await expect(run('write_file', { path, content: 'x' })).rejects.toThrow(/outside the shared folder/);
  await expect(run('list_directory', { path })).rejects.toThrow(/outside the shared folder/);
});

test('links do not lead out', async () => {
  await symlink(join(folder, 'secret.txt'), join(root, 'link.txt'));
  await symlink(folder, join(root, 'door'));
  await expect(run('read_file', { path: 'link.txt' })).rejects.toThrow(/outside/);
  await expect(run('read_file', { path: 'door/secret.txt' })).rejects.toThrow(/outside/);
  await expect(run('list_directory', { path: 'door' })).rejects.toThrow(/outside/);
  await expect(run('write_file', { path: 'door/new.txt', content: 'x' })).rejects.toThrow(/outside/);
  await expect(run('write_file', { path: 'door/made/new.txt', content: 'x' })).rejects.toThrow(/outside/);
  await expect(run('write_file', { path: 'link.txt', content: 'x' })).rejects.toThrow(/not a file/);
  expect(await readFile(join(folder, 'secret.txt'), 'utf8')).toBe('secret');
});

/** Lets `sub` become a link to the folder outside just before `step` is done, when everything has been looked at. */
function swapBefore(step: typeof open | typeof readdir): void {
  const mocked = vi.mocked(step as typeof open);
  const original = mocked.getMockImplementation() as typeof open;
  mocked.mockImplementationOnce(async (...args) => {
    await rename(join(root, 'sub'), join(root, 'was'));
    await symlink(folder, join(root, 'sub'));
    return original(...args);
  });
}

test('a folder that becomes a link while we look does not lead out', async () => {
  await writeFile(join(root, 'sub', 'secret.txt'), 'harmless');
  swapBefore(open);
  await expect(run('read_file', { path: 'sub/secret.txt' })).rejects.toThrow(/outside the shared folder/);
});

test('nor does one that is listed', async () => {
  swapBefore(readdir);
  await expect(run('list_directory', { path: 'sub' })).rejects.toThrow(/outside the shared folder/);
});

test('a link that stays inside is followed', async () => {
  await symlink('a.txt', join(root, 'same.txt'));
  expect(await run('read_file', { path: 'same.txt' })).toMatchObject({ content: 'hello' });
});

test('sizes are bounded', async () => {
  await expect(run('read_file', { path: 'a.txt' }, { bytesMax: 4 })).rejects.toThrow(
    /has 5 bytes, at most 4/,
  );
  await expect(run('write_file', { path: 'b', content: 'hello' }, { bytesMax: 4 })).rejects.toThrow(
    /at most 4/,
  );
});

test('what is no text file says so', async () => {
  await writeFile(join(root, 'image'), Buffer.from([0x89, 0, 1]));
  await expect(run('read_file', { path: 'image' })).rejects.toThrow(/not a text file/);
  await expect(run('read_file', { path: 'sub' })).rejects.toThrow(/not a file/);
  await expect(run('read_file', { path: 'none' })).rejects.toThrow(/there is no "none"/);
  await expect(run('list_directory', { path: 'a.txt' })).rejects.toThrow(/not a folder/);
});

test('read-only means that there is no tool for writing', async () => {
  await expect(run('write_file', { path: 'b', content: 'x' }, { readOnly: true })).rejects.toThrow(
    /no executor/,
  );
});
