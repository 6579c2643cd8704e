import type { Connection } from './connection.js';
import { bytesOf, type Content } from './content.js';
import { CODES, ValidationError } from './error.js';
import type { CallOptions } from './resources.js';
import type { File, FileList } from './wire.js';

/** What a file holds. */
export interface FileContent {
  mimeType: string;
  /** Counts its changes, from 1. */
  version: number;
  data: Uint8Array;
  /** The same as text, read as UTF-8. */
  text(): string;
}

/** What must be so for a file to be changed: there is none yet, or it has this version. */
export type Only = 'new' | { version: number };

/** What `files.write` takes. */
export interface WriteOptions extends CallOptions {
  /** What it holds; by default what its name says. */
  mimeType?: string;
  /** Otherwise the gateway refuses with code `CHANGED`, and nothing is written. */
  only?: Only;
}

/** The files of spaces: the same ones that agents read and write. */
export class Files {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** By name; `after` takes the `nextCursor` of the page before. */
  list(
    spaceId: string,
    query: { prefix?: string; after?: string; limit?: number } = {},
    options: CallOptions = {},
  ): Promise<FileList> {
    const path = `/v1/spaces/${encodeURIComponent(spaceId)}/files`;
    return this.#connection.json(path, { ...options, query });
  }

  /** The newest version, or an earlier one. */
  async read(
    spaceId: string,
    path: string,
    { version, ...options }: CallOptions & { version?: number } = {},
  ): Promise<FileContent> {
    const response = await this.#connection.send(address(spaceId, path), { ...options, query: { version } });
    const data = new Uint8Array(await response.arrayBuffer());
    return {
      mimeType: response.headers.get('content-type') ?? 'application/octet-stream',
      version: Number(response.headers.get('toolgate-file-version')),
      data,
      text: () => new TextDecoder().decode(data),
    };
  }

  /** Writes a file, whole. */
  async write(
    spaceId: string,
    path: string,
    content: Content,
    { mimeType, only, ...options }: WriteOptions = {},
  ): Promise<File> {
    return this.#connection.json(address(spaceId, path), {
      ...options,
      method: 'PUT',
      bytes: await bytesOf(content),
      headers: { ...(mimeType === undefined ? {} : { 'content-type': mimeType }), ...condition(only) },
      // With a condition a second try could not tell its own first one from somebody else's.
      safe: only === undefined,
    });
  }

  /** Takes a file away, with its earlier versions. */
  async delete(spaceId: string, path: string, { version, ...options }: DeleteOptions = {}): Promise<void> {
    const headers = version === undefined ? {} : condition({ version });
    await this.#connection.json(address(spaceId, path), { ...options, method: 'DELETE', headers });
  }
}

/** What `files.delete` takes. */
export interface DeleteOptions extends CallOptions {
  /** Only this version. */
  version?: number;
}

function condition(only: Only | undefined): Record<string, string> {
  if (only === undefined) return {};
  return only === 'new' ? { 'if-none-match': '*' } : { 'if-match': `"${only.version}"` };
}

function address(spaceId: string, path: string): string {
  const parts = path.split('/');
  // An address would be shortened by these, and lead somewhere else.
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new ValidationError(CODES.validation, `${JSON.stringify(path)} is no name of a file`);
  }
  return `/v1/spaces/${encodeURIComponent(spaceId)}/files/${parts.map(encodeURIComponent).join('/')}`;
}
