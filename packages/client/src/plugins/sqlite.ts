import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ToolgatePlugin } from '../plugin.js';
import { defineTool } from '../runnable.js';
import type { Answer, Query } from './sqlite-process.js';

const ROWS_MAX = 500;
const QUERY_MS_MAX = 10_000;
const TABLES =
  "select name, type from sqlite_schema where type in ('table', 'view') and name not like 'sqlite_%' order by name";

/** What the SQLite plugin is made of. */
export interface SqliteOptions {
  /** The most rows that a query gives; 500. */
  rowsMax?: number;
  /** How long a query may take, in milliseconds; 10,000. */
  timeoutMs?: number;
}

/**
 * Questions to a SQLite database, which cannot be changed by them: `sql_query`, `list_tables`. Needs a Node with
 * `node:sqlite` (22.5 or newer).
 */
export function sqlitePlugin(file: string, options: SqliteOptions = {}): ToolgatePlugin {
  const { rowsMax = ROWS_MAX, timeoutMs = QUERY_MS_MAX } = options;
  const database = new Database(file, timeoutMs);
  return {
    name: 'sqlite',
    version: '1.0.0',
    tools: [
      defineTool({
        name: 'sql_query',
        description:
          'Runs one SELECT on the SQLite database and gives columns and rows. Nothing can be changed.',
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
          return database.ask({ sql: query, params, rowsMax }, signal);
        },
      }),
      defineTool({
        name: 'list_tables',
        description: 'Lists the tables and views of the SQLite database with their columns.',
        parameters: { type: 'object', properties: {}, additionalProperties: false },
        execute: async (_, { signal }) => {
          const tables = await database.ask({ sql: TABLES, params: [], rowsMax: 1000 }, signal);
          const described = [];
          for (const [name, type] of tables.rows) {
            const sql = 'select name, type from pragma_table_info(?)';
            const columns = await database.ask({ sql, params: [String(name)], rowsMax: 1000 }, signal);
            described.push({
              name,
              type,
              columns: columns.rows.map(([column, kind]) => `${column} ${kind}`.trim()),
            });
          }
          return { tables: described };
        },
      }),
    ],
    hooks: { onUnregister: () => database.close() },
  };
}

/** The file is opened for reading alone; this keeps out what reaches other files (`ATTACH`, `VACUUM INTO`). */
function refuseOther(sql: string): void {
  const bare = sql.replace(/^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)+/, '');
  const first = /^[A-Za-z]+/.exec(bare)?.[0].toUpperCase() ?? '';
  if (!['SELECT', 'WITH', 'VALUES', 'EXPLAIN'].includes(first)) {
    throw new Error(`only SELECT is allowed; the query begins with "${bare.slice(0, 20)}"`);
  }
}

/** A database in a process of its own: started when it is first asked, ended when a query does not end. */
class Database {
  readonly #file: string;
  readonly #timeoutMs: number;
  #child: ChildProcess | undefined;
  /** Queries go one after another. */
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
    const timer = setTimeout(() => this.close(), this.#timeoutMs);
    const stop = (): void => this.close();
    signal.addEventListener('abort', stop, { once: true });
    try {
      child.send(query);
      const answer = (await word(child, `the query took longer than ${this.#timeoutMs} ms`)) as Answer;
      if ('error' in answer) throw new Error(answer.error);
      return answer;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
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
      await word(child, 'it ended');
    } catch {
      const reason = /Error(?: \[\w+\])?: (.*)/.exec(said)?.[1] ?? 'no reason given';
      throw new Error(`the database cannot be opened by Node ${process.versions.node}: ${reason}`);
    }
    // A program that has nothing else to do may end.
    child.unref();
    child.channel?.unref();
    this.#child = child;
    return child;
  }
}

/** The next thing a process says; fails with `otherwise` when it ends instead. */
function word(child: ChildProcess, otherwise: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const heard = (message: unknown): void => {
      child.off('exit', ended);
      resolve(message);
    };
    const ended = (): void => {
      child.off('message', heard);
      reject(new Error(otherwise));
    };
    child.once('message', heard);
    child.once('exit', ended);
  });
}
