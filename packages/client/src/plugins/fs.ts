import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { freshKey } from '../fresh-key.js';
import type { ToolgatePlugin } from '../plugin.js';
import { defineTool } from '../runnable.js';
import type { RunnableTool } from '../tool.js';

const BYTES_MAX = 1024 * 1024;
const ENTRIES_MAX = 1000;

/** Options of the file system plugin. */
export interface FileSystemOptions {
  /** The shared folder. Everything outside it is inaccessible. */
  root: string;
  /** Leaves `write_file` out. */
  readOnly?: boolean;
  /** The largest file that is read or written, in bytes; 1 MiB by default. */
  bytesMax?: number;
}

const PATH = {
  type: 'string',
  description: 'Relative to the shared folder, with "/" between folders.',
} as const;

/**
 * Files below one folder: `read_file`, `write_file`, `list_directory`. Confined to the folder: `..`, absolute
 * paths and links that lead out of it are rejected.
 */
export function fileSystemPlugin({
  root,
  readOnly = false,
  bytesMax = BYTES_MAX,
}: FileSystemOptions): ToolgatePlugin {
  const folder = new Root(root);
  const tools: RunnableTool[] = [
    defineTool({
      name: 'read_file',
      description: 'Reads a text file of the shared folder.',
      parameters: {
        type: 'object',
        properties: { path: PATH },
        required: ['path'],
        additionalProperties: false,
      },
      execute: async ({ path }) => ({ path, content: await read(folder, path, bytesMax) }),
    }),
    defineTool({
      name: 'list_directory',
      description: 'Lists a folder of the shared folder; "." is the shared folder itself.',
      parameters: { type: 'object', properties: { path: PATH }, additionalProperties: false },
      execute: async ({ path = '.' }) => ({ path, ...(await list(folder, path)) }),
    }),
  ];
  if (!readOnly) {
    tools.push(
      defineTool({
        name: 'write_file',
        description:
          'Writes a text file into the shared folder and replaces an existing one; creates folders as needed.',
        parameters: {
          type: 'object',
          properties: { path: PATH, content: { type: 'string' } },
          required: ['path', 'content'],
          additionalProperties: false,
        },
        execute: async ({ path, content }) => {
          const bytes = Buffer.byteLength(content);
          if (bytes > bytesMax)
            throw new Error(`the content has ${bytes} bytes, at most ${bytesMax} are allowed`);
          await write(folder, path, content);
          return { path, bytes };
        },
      }),
    );
  }
  return { name: 'filesystem', version: '1.0.0', tools };
}

/** The shared folder, which confines all paths. */
class Root {
  readonly #path: string;
  constructor(path: string) {
    this.#path = path;
  }

  /** The real path of an existing file or folder. */
  async existing(path: string): Promise<string> {
    const wanted = this.#below(path);
    const real = await realpath(join(this.#path, wanted)).catch((error: NodeJS.ErrnoException) => {
      throw new Error(error.code === 'ENOENT' ? `there is no "${path}"` : `"${path}" cannot be opened`);
    });
    await this.refuseOutside(real, path);
    return real;
  }

  /** The real path of a file that may not exist yet. Creates its folder. */
  async wanted(path: string): Promise<string> {
    const wanted = this.#below(path);
    if (wanted === '' || wanted === '.') throw new Error('expected the path of a file');
    let parent = dirname(join(this.#path, wanted));
    const missing: string[] = [];
    // An existing parent may be a link; a missing one cannot be.
    while (!(await lstat(parent).catch(() => undefined))) {
      missing.unshift(basename(parent));
      parent = dirname(parent);
    }
    const real = await realpath(parent);
    await this.refuseOutside(real, path);
    const folder = join(real, ...missing);
    await mkdir(folder, { recursive: true });
    return join(folder, basename(wanted));
  }

  async refuseOutside(real: string, path: string): Promise<void> {
    const way = relative(await realpath(this.#path), real);
    if (way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way)) throw outside(path);
  }

  #below(path: string): string {
    if (path.includes('\0') || isAbsolute(path) || /^[A-Za-z]:|^\\/.test(path)) throw outside(path);
    if (path.split(/[/\\]/).includes('..')) throw outside(path);
    return path;
  }
}

function outside(path: string): Error {
  return new Error(`"${path}" is outside the shared folder, expected a path relative to it`);
}

/** Opens without following links and without waiting for a pipe, and reads regular files only. */
async function read(folder: Root, path: string, bytesMax: number): Promise<string> {
  const real = await folder.existing(path);
  const handle = await open(
    real,
    constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
  );
  try {
    // Guards against a link that was swapped in after the check: then this is another file. Linux knows the
    // path of an open file; elsewhere the name is resolved again.
    const place = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => realpath(real));
    await folder.refuseOutside(place, path);
    const opened = await handle.stat();
    if (!opened.isFile()) throw new Error('the path is not a file');
    if (opened.size > bytesMax)
      throw new Error(`the file has ${opened.size} bytes, at most ${bytesMax} can be read`);
    const named = await stat(place).catch(() => undefined);
    if (named?.ino !== opened.ino || named.dev !== opened.dev)
      throw new Error('the file changed while it was read');
    const bytes = await handle.readFile();
    if (bytes.includes(0)) throw new Error('the file is not a text file');
    return bytes.toString('utf8');
  } finally {
    await handle.close();
  }
}

/**
 * Writes a temporary file beside the file and renames it, so that readers never see half of it. A link there
 * is replaced, not followed.
 */
async function write(folder: Root, path: string, content: string): Promise<void> {
  const place = await folder.wanted(path);
  const there = await lstat(place).catch(() => undefined);
  if (there && !there.isFile()) throw new Error(`"${path}" exists and is not a file`);
  const aside = join(dirname(place), `.${freshKey()}.part`);
  try {
    const handle = await open(aside, 'wx');
    try {
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    await folder.refuseOutside(await realpath(aside), path);
    await rename(aside, place);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}

async function list(
  folder: Root,
  path: string,
): Promise<{ entries: Array<{ name: string; type: string }>; truncated: boolean }> {
  const real = await folder.existing(path);
  const all = await readdir(real, { withFileTypes: true }).catch(() => {
    throw new Error('the path is not a folder');
  });
  // Guards against a link that was swapped in after the check.
  await folder.refuseOutside(await realpath(real), path);
  const entries = all
    .map((entry) => ({
      name: entry.name,
      type: entry.isDirectory() ? 'folder' : entry.isFile() ? 'file' : 'other',
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return { entries: entries.slice(0, ENTRIES_MAX), truncated: entries.length > ENTRIES_MAX };
}
