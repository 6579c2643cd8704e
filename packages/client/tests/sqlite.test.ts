import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ToolgateClient } from '@toolgate/client';
import { type SqliteOptions, sqlitePlugin } from '@toolgate/client/plugins/sqlite';
import { expect, test, vi } from 'vitest';
import { afterwards } from './world.js';

async function database(options: SqliteOptions = {}): Promise<{ run: Run; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-sqlite-'));
  afterwards(() => rm(folder, { recursive: true }));
  const file = join(folder, 'shop.db');
  const written = new DatabaseSync(file);
  written.exec(`create table orders (id integer primary key, item text, price real);
    insert into orders values (1, 'shoes', 59.5), (2, 'hat', 20), (9007199254740993, 'big', null);
    create view cheap as select * from orders where price < 30;`);
  written.close();
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1' }).use(sqlitePlugin(file, options));
  afterwards(() => client.close());
  return { folder, run: (name, args = {}) => client.execute({ name, args }) };
}
const COUNT = 'with recursive x(n) as (select 1 union all select n + 1 from x)';
const ENDLESS = `${COUNT} select count(*) from x`;
type Run = (name: string, args?: Record<string, unknown>) => Promise<unknown>;

test('a query gives columns and rows', async () => {
  const { run } = await database();
  const query = 'select item, price from orders where id < ? order by id';
  expect(await run('sql_query', { query, params: [3] })).toEqual({
    columns: ['item', 'price'],
    rows: [
      ['shoes', 59.5],
      ['hat', 20],
    ],
    truncated: false,
  });
});
test('columns of one name keep their own values', async () => {
  const { run } = await database();
  const query =
    'select a.id, b.id, a.item as "__proto__" from orders a, orders b where a.id = 1 and b.id = 2';
  expect(await run('sql_query', { query })).toEqual({
    columns: ['id', 'id', '__proto__'],
    rows: [[1, 2, 'shoes']],
    truncated: false,
  });
});
test('tables and views are listed with their columns', async () => {
  const { run } = await database();
  expect(await run('list_tables')).toEqual({
    tables: [
      { name: 'cheap', type: 'view', columns: ['id INTEGER', 'item TEXT', 'price REAL'] },
      { name: 'orders', type: 'table', columns: ['id INTEGER', 'item TEXT', 'price REAL'] },
    ],
  });
});
test('numbers that JSON cannot hold become text, and rows are bounded', async () => {
  const { run } = await database({ rowsMax: 1 });
  const query = 'select id from orders order by id desc';
  expect(await run('sql_query', { query })).toEqual({
    columns: ['id'],
    rows: [['9007199254740993']],
    truncated: true,
  });
});
test.each([
  'insert into orders values (3, 1, 1)',
  'with x as (select 1) delete from orders',
  'drop table orders',
  'pragma writable_schema = 1',
  '-- select\nattach "other.db" as other',
  '/* select */ vacuum into "copy.db"',
  '; select 1',
  '',
])('%j changes nothing', async (query) => {
  const { run, folder } = await database();
  await expect(run('sql_query', { query })).rejects.toThrow();
  expect(existsSync(join(folder, 'copy.db'))).toBe(false);
  expect(await run('sql_query', { query: 'select count(*) from orders' })).toMatchObject({ rows: [[3]] });
});
test('a query without end is ended, and the next one is answered', async () => {
  const { run } = await database({ timeoutMs: 300 });
  await expect(run('sql_query', { query: ENDLESS })).rejects.toThrow(/longer than 300 ms/);
  expect(await run('sql_query', { query: 'select 1 as one' })).toMatchObject({ rows: [[1]] });
});
test('a process that ends is not called slow, and the next query is answered', async () => {
  const { run, folder } = await database();
  await run('sql_query', { query: 'select 1' });
  const pid = Number(execFileSync('pgrep', ['-f', join(folder, 'shop.db')], { encoding: 'utf8' }));
  const failed = expect(run('sql_query', { query: ENDLESS })).rejects.toThrow(
    /^the process that runs queries ended$/,
  );
  // "R": it is at work on the query.
  await vi.waitFor(async () => expect(await readFile(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) R /));
  process.kill(pid, 'SIGKILL');
  await failed;
  expect(await run('sql_query', { query: 'select 1' })).toMatchObject({ rows: [[1]] });
});
test.each([
  ['one value', 'select hex(zeroblob(20000000)) as much'],
  ['many rows', `${COUNT} select hex(zeroblob(1000)) from x limit 400`],
  [
    'the names of columns',
    `select ${Array.from({ length: 300 }, (_, n) => `1 as "${n}${'x'.repeat(1000)}"`)}`,
  ],
])('an answer is bounded in bytes: %s', async (_, query) => {
  const { run } = await database();
  await expect(run('sql_query', { query })).rejects.toThrow(
    /has more than 262144 bytes, select fewer rows or shorter values/,
  );
  expect(await run('sql_query', { query: 'select 1' })).toMatchObject({ rows: [[1]] });
});
test('where the file is stays untold', async () => {
  const { run } = await database();
  const query = 'select file from "PRAGMA_database_list"';
  await expect(run('sql_query', { query })).rejects.toThrow(/the path of the database is not accessible/);
});
test('a database that is not there says so', async () => {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1' }).use(sqlitePlugin('/nowhere/x.db'));
  await expect(client.execute({ name: 'list_tables' })).rejects.toThrow(
    /cannot be opened by Node .*: unable to open/,
  );
});
