// Runs the SQLite plugin's queries in a child process, which can be killed when a query exceeds its timeout.
import { DatabaseSync, type StatementSync } from 'node:sqlite';

/** A query sent to the process. */
export interface Query {
  sql: string;
  params: Array<string | number | null>;
  rowsMax: number;
  bytesMax: number;
}

/** The result of a query. */
export type Answer = { columns: string[]; rows: unknown[][]; truncated: boolean } | { error: string };

const [file = ''] = process.argv.slice(2);
const database = new DatabaseSync(file, { readOnly: true, allowExtension: false });

process.on('message', (query: Query) => process.send?.(answer(query)));
process.on('disconnect', () => process.exit(0));
process.send?.('ready');

function answer({ sql, params, rowsMax, bytesMax }: Query): Answer {
  try {
    const statement = database.prepare(sql);
    statement.setReadBigInts(true);
    const columns = statement.columns().map(({ name }) => name);
    const valuesOf = rowReader(statement, columns);
    const rows: unknown[][] = [];
    let bytes = Buffer.byteLength(JSON.stringify(columns));
    for (const row of statement.iterate(...params)) {
      if (rows.length === rowsMax) return { columns, rows, truncated: true };
      const values = valuesOf(row).map(shown);
      bytes += Buffer.byteLength(JSON.stringify(values));
      if (bytes > bytesMax)
        return { error: `the result has more than ${bytesMax} bytes, select fewer rows or shorter values` };
      rows.push(values);
    }
    return { columns, rows, truncated: false };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * A function that reads a row's values in the order of `columns`. A row object has one value per name, so
 * duplicate names are rejected.
 */
function rowReader(statement: StatementSync, columns: string[]): (row: unknown) => unknown[] {
  if (typeof statement.setReturnArrays === 'function') {
    statement.setReturnArrays(true);
    return (row) => row as unknown[];
  }
  const twice = columns.find((name, index) => columns.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two columns are named "${twice}", rename one with AS`);
  return (row) => columns.map((name) => (row as Record<string, unknown>)[name]);
}

/** A value that JSON can represent. */
function shown(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  return value instanceof Uint8Array ? `<${value.length} bytes>` : value;
}
