import type { Connection } from './connection.js';
import { bytesOf, type Content } from './content.js';
import type { CallOptions } from './resources.js';
import type { Document, DocumentList } from './wire.js';

/** Whose documents: an agent's own, or the project's when it is left out. */
export interface DocumentQuery {
  agent?: string;
}

/** What `knowledge.put` takes. */
export interface PutDocument extends DocumentQuery, CallOptions {
  /** What it is written in: `text/plain`, `text/markdown` or `text/html`. */
  mimeType?: string;
  /** Its name for people; by default its own. */
  title?: string;
  /** Where it comes from. */
  source?: string;
}

/** The documents that `searchKnowledge` looks in; for backends only. */
export class Knowledge {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Keeps a document, in place of the one with its id. */
  async put(documentId: string, content: Content, options: PutDocument = {}): Promise<Document> {
    const { mimeType = 'text/plain', agent, title, source, ...rest } = options;
    return this.#connection.json(address(documentId), {
      ...rest,
      method: 'PUT',
      query: { agent, title, source },
      bytes: await bytesOf(content),
      headers: { 'content-type': mimeType },
      safe: true,
    });
  }

  /** A document with its text. */
  get(documentId: string, { agent, ...options }: DocumentQuery & CallOptions = {}): Promise<Document> {
    return this.#connection.json(address(documentId), { ...options, query: { agent } });
  }

  /** By id; `after` takes the `nextCursor` of the page before. */
  list(
    query: DocumentQuery & { after?: string; limit?: number } = {},
    options: CallOptions = {},
  ): Promise<DocumentList> {
    return this.#connection.json('/v1/knowledge/documents', { ...options, query: { ...query } });
  }

  /** Takes a document away: no agent finds it any more. */
  delete(documentId: string, { agent, ...options }: DocumentQuery & CallOptions = {}): Promise<void> {
    return this.#connection.json(address(documentId), { ...options, method: 'DELETE', query: { agent } });
  }
}

function address(documentId: string): string {
  return `/v1/knowledge/documents/${encodeURIComponent(documentId)}`;
}
