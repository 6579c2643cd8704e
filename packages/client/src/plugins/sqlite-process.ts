// Runs queries for the SQLite plugin in a process of its own, which can be ended when one of them does not end.
import { DatabaseSync } from 'node:sqlite';

/** A query on its way to the process. */
export interface Query {
  sql: string;
  params: Array<string | number | null>;
  rowsMax: number;
}

/** What came of it. */
export type Answer = { columns: string[]; rows: unknown[][]; truncated: boolean } | { error: string };

const [file = ''] = process.argv.slice(2);
const database = new DatabaseSync(file, { readOnly: true, allowExtension: false });

process.on('message', (query: Query) => process.send?.(answer(query)));
process.on('disconnect', () => process.exit(0));
process.send?.('ready');

function answer({ sql, params, rowsMax }: Query): Answer {
  try {
    const statement = database.prepare(sql);
    statement.setReadBigInts(true);
    const columns = statement.columns().map(({ name }) => name);
    const rows: unknown[][] = [];
    for (const row of statement.iterate(...params)) {
      if (rows.length === rowsMax) return { columns, rows, truncated: true };
      rows.push(columns.map((name) => shown((row as Record<string, unknown>)[name])));
    }
    return { columns, rows, truncated: false };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** A value as JSON can say it. */
function shown(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  return value instanceof Uint8Array ? `<${value.length} bytes>` : value;
}
