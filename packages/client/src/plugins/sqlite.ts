import { type ChildProcess, fork } from 'node:child_process';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ToolgatePlugin } from '../plugin.js';
import { defineTool } from '../runnable.js';
import type { Answer, Query } from './sqlite-process.js';

const ROWS_MAX = 500;
const BYTES_MAX = 256 * 1024;
const QUERY_MS_MAX = 10_000;
const COLUMNS_MAX = 10_000;
/** One row per column of a table or view. */
const COLUMNS = `
  select entry.name, entry.type, field.name, field.type
  from sqlite_schema as entry, pragma_table_info(entry.name) as field
  where entry.type in ('table', 'view') and entry.name not like 'sqlite_%'
  order by entry.name, field.cid`;

/** Options of the SQLite plugin. */
export interface SqliteOptions {
  /** Most rows of a result; 500 by default. */
  rowsMax?: number;
  /** Most bytes of a result as JSON; 256 KiB by default. A query with a larger result is rejected. */
  bytesMax?: number;
  /** Timeout of a query in milliseconds; 10,000 by default. */
  timeoutMs?: number;
}

/**
 * Read-only queries on a SQLite database: `sql_query`, `list_tables`. Needs a Node with `node:sqlite` (22.5
 * or newer).
 */
export function sqlitePlugin(file: string, options: SqliteOptions = {}): ToolgatePlugin {
  const { rowsMax = ROWS_MAX, bytesMax = BYTES_MAX, timeoutMs = QUERY_MS_MAX } = options;
  const database = new Database(file, timeoutMs);
  return {
    name: 'sqlite',
    version: '1.0.0',
    tools: [
      defineTool({
        name: 'sql_query',
        description:
          'Runs one SELECT on the SQLite database and returns columns and rows. The database is read-only.',
        parameters: {
          type: 'object',
          properties: {
            query: { type: 'string', description: 'One SELECT; "?" for each parameter.' },
            params: { type: 'array', items: { type: ['string', 'number', 'null'] } },
          },
          required: ['query'],
          additionalProperties: false,
        },
        execute: ({ query, params = [] }, { signal }) => {
          refuseOther(query);
          return database.ask({ sql: query, params, rowsMax, bytesMax }, signal);
        },
      }),
      defineTool({
        name: 'list_tables',
        description: 'Lists the tables and views of the SQLite database with their columns.',
        parameters: { type: 'object', properties: {}, additionalProperties: false },
        execute: async (_, { signal }) => {
          const query = { sql: COLUMNS, params: [], rowsMax: COLUMNS_MAX, bytesMax };
          const { rows } = await database.ask(query, signal);
          const tables = new Map<unknown, { name: unknown; type: unknown; columns: string[] }>();
          for (const [name, type, column, kind] of rows) {
            const table = tables.get(name) ?? { name, type, columns: [] };
            table.columns.push(`${column} ${kind}`.trim());
            tables.set(name, table);
          }
          return { tables: [...tables.values()] };
        },
      }),
    ],
    hooks: { onUnregister: () => database.close() },
  };
}

/**
 * The file is opened read-only; this also rejects statements that reach other files (`ATTACH`, `VACUUM INTO`)
 * or reveal the path of this one.
 */
function refuseOther(sql: string): void {
  const bare = sql.replace(/^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)+/, '');
  const first = /^[A-Za-z]+/.exec(bare)?.[0].toUpperCase() ?? '';
  if (!['SELECT', 'WITH', 'VALUES', 'EXPLAIN'].includes(first)) {
    throw new Error(`only SELECT is allowed, the query begins with "${bare.slice(0, 20)}"`);
  }
  if (/pragma_database_list/i.test(sql)) throw new Error('the path of the database is not accessible');
}

/** A database in a child process: started on the first query, killed when a query exceeds its timeout. */
class Database {
  readonly #file: string;
  readonly #timeoutMs: number;
  #child: ChildProcess | undefined;
  /** Queries run one after another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(file: string, timeoutMs: number) {
    this.#file = file;
    this.#timeoutMs = timeoutMs;
  }

  ask(query: Query, signal: AbortSignal): Promise<Exclude<Answer, { error: string }>> {
    const answer = this.#last.then(() => this.#ask(query, signal));
    this.#last = answer.catch(() => {});
    return answer;
  }

  close(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  async #ask(query: Query, signal: AbortSignal): Promise<Exclude<Answer, { error: string }>> {
    const child = await this.#started();
    let reason: string | undefined;
    const stop = (why: string): void => {
      reason ??= why;
      this.close();
    };
    const timer = setTimeout(() => stop(`the query took longer than ${this.#timeoutMs} ms`), this.#timeoutMs);
    const abort = (): void => stop('the query was cancelled');
    signal.addEventListener('abort', abort, { once: true });
    try {
      // A failure to send means that the process has ended, which is handled below.
      child.send(query, () => {});
      const answer = (await nextMessage(
        child,
        () => reason ?? 'the process that runs queries ended',
      )) as Answer;
      if ('error' in answer) throw new Error(this.#withoutPath(answer.error));
      return answer;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  /** Removes the file's path from an error message: the model has no use for it. */
  #withoutPath(text: string): string {
    return text
      .replaceAll(resolve(this.#file), basename(this.#file))
      .replaceAll(this.#file, basename(this.#file));
  }

  async #started(): Promise<ChildProcess> {
    if (this.#child?.connected) return this.#child;
    const script = fileURLToPath(new URL('./sqlite-process.js', import.meta.url));
    const execArgv = ['--no-warnings'];
    const child = fork(script, [this.#file], { execArgv, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    let said = '';
    child.stderr?.on('data', (piece: Buffer) => {
      said = (said + piece).slice(-2000);
    });
    try {
      await nextMessage(child, () => 'it ended');
    } catch {
      const reason = /Error(?: \[\w+\])?: (.*)/.exec(said)?.[1] ?? 'no reason given';
      throw new Error(
        `the database cannot be opened by Node ${process.versions.node}: ${this.#withoutPath(reason)}`,
      );
    }
    // Must not keep an otherwise finished program alive.
    child.unref();
    child.channel?.unref();
    this.#child = child;
    return child;
  }
}

/** The next message of a process; rejects with the reason if it ends instead. */
function nextMessage(child: ChildProcess, otherwise: () => string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const heard = (message: unknown): void => {
      child.off('exit', ended);
      resolve(message);
    };
    const ended = (): void => {
      child.off('message', heard);
      reject(new Error(otherwise()));
    };
    child.once('message', heard);
    child.once('exit', ended);
  });
}
