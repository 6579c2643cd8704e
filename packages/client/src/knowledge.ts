import type { Connection } from './connection.js';
import { bytesOf, type Content } from './content.js';
import type { CallOptions } from './resources.js';
import type { Document, DocumentList, KnowledgeResults, PutDocuments, StoredDocuments } from './wire.js';

/** The collection: an agent's own documents, or the project's if not set. */
export interface DocumentQuery {
  agent?: string;
}

/** Options of `knowledge.put`. */
export interface PutDocument extends DocumentQuery, CallOptions {
  /** Media type: `text/plain`, `text/markdown` or `text/html`. */
  mimeType?: string;
  /** Title for people; the document's own by default. */
  title?: string;
  /** Source of the document, such as a URL. */
  source?: string;
}

/** The documents that `searchKnowledge` searches; needs a secret key. */
export class Knowledge {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Stores a document, and replaces the one with the same id. */
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

  /** Documents ordered by id; `after` is the `nextCursor` of the previous page. */
  list(
    query: DocumentQuery & { after?: string; limit?: number } = {},
    options: CallOptions = {},
  ): Promise<DocumentList> {
    return this.#connection.json('/v1/knowledge/documents', { ...options, query: { ...query } });
  }

  /** Stores up to 500 documents, each for itself: one that is refused does not stop the others. */
  putMany(
    documents: PutDocuments['documents'],
    { agent, ...options }: DocumentQuery & CallOptions = {},
  ): Promise<StoredDocuments> {
    const body = { documents };
    return this.#connection.json('/v1/knowledge/documents', {
      ...options,
      method: 'POST',
      query: { agent },
      body,
      safe: true,
    });
  }

  /** The passages that agents find, best first. */
  search(
    query: string,
    { agent, limit, ...options }: DocumentQuery & { limit?: number } & CallOptions = {},
  ): Promise<KnowledgeResults> {
    return this.#connection.json('/v1/knowledge/search', { ...options, query: { query, agent, limit } });
  }

  /** Deletes a document: no agent finds it any more. */
  delete(documentId: string, { agent, ...options }: DocumentQuery & CallOptions = {}): Promise<void> {
    return this.#connection.json(address(documentId), { ...options, method: 'DELETE', query: { agent } });
  }
}

function address(documentId: string): string {
  return `/v1/knowledge/documents/${encodeURIComponent(documentId)}`;
}
