import type { Connection } from './connection.js';
import { bytesOf, type Content } from './content.js';
import { CODES, ValidationError } from './error.js';
import type { CallOptions } from './resources.js';
import type { File, FileLink, FileList } from './wire.js';

/** A file's content. */
export interface FileContent {
  mimeType: string;
  /** Version number: starts at 1 and grows with every change; never reused. */
  version: number;
  data: Uint8Array;
  /** The content as text, decoded as UTF-8. */
  text(): string;
}

/** The precondition of a change: the file does not exist, or has this version. */
export type Only = 'new' | { version: number };

/** Options of `files.write`. */
export interface WriteOptions extends CallOptions {
  /** Media type; by default it follows from the path's extension. */
  mimeType?: string;
  /** If it does not hold, the gateway rejects the change with code `CHANGED`, and nothing is written. */
  only?: Only;
}

/** Workspace files of spaces: the same files that agents read and write. */
export class Files {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Files ordered by path; `after` is the `nextCursor` of the previous page. */
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

  /** Writes a whole file. */
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
      // Not retried with a precondition: a second attempt could not tell its own first write from another
      // client's.
      safe: only === undefined,
    });
  }

  /**
   * A link to one version of a file that works without a key until it expires, for `<img src>` and downloads. Ask for it
   * when it is shown; do not store it.
   */
  async link(
    spaceId: string,
    path: string,
    { version, expiresIn, ...options }: LinkOptions = {},
  ): Promise<FileLink> {
    const link = await this.#connection.json<FileLink>(
      `/v1/spaces/${encodeURIComponent(spaceId)}/file-links`,
      {
        ...options,
        method: 'POST',
        body: { path, version, expiresIn },
        safe: true,
      },
    );
    return { ...link, url: this.#connection.absolute(link.url) };
  }

  /** Deletes a file and its earlier versions. */
  async delete(spaceId: string, path: string, { version, ...options }: DeleteOptions = {}): Promise<void> {
    const headers = version === undefined ? {} : condition({ version });
    await this.#connection.json(address(spaceId, path), { ...options, method: 'DELETE', headers });
  }
}

/** Options of `files.link`. */
export interface LinkOptions extends CallOptions {
  /** Version of the file; by default the newest. */
  version?: number;
  /** Seconds that the link works for; by default the gateway's setting. */
  expiresIn?: number;
}

/** Options of `files.delete`. */
export interface DeleteOptions extends CallOptions {
  /** Delete only this version. */
  version?: number;
}

function condition(only: Only | undefined): Record<string, string> {
  if (only === undefined) return {};
  return only === 'new' ? { 'if-none-match': '*' } : { 'if-match': `"${only.version}"` };
}

function address(spaceId: string, path: string): string {
  const parts = path.split('/');
  // URL normalization would remove these segments, and the request would reach another path.
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new ValidationError(
      CODES.validation,
      `${JSON.stringify(path)} is not a file path, expected one like "notes/today.md"`,
    );
  }
  return `/v1/spaces/${encodeURIComponent(spaceId)}/files/${parts.map(encodeURIComponent).join('/')}`;
}
