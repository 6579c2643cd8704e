import { readFileSync } from 'node:fs';
import { ToolgateClient } from '@toolgate/client';
import { loadPackage } from '@toolgate/client/plugins/package';
import { describe, expect, test } from 'vitest';

const PLUGINS = ['calculator', 'csv-summary', 'json-diff', 'text-statistics', 'time'];
const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const curators = { 'toolgate-examples': read('./curator.pub.pem') };

/** A client with all five packages, as they are signed. */
async function loaded(): Promise<ToolgateClient> {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1', key: 'sk_x' });
  for (const name of PLUGINS) client.use(await loadPackage(read(`./${name}/${name}.json`), { curators }));
  return client;
}

test('all of them are signed by the example curator and live side by side', async () => {
  const client = await loaded();
  expect(client.getPluginNames()).toEqual(PLUGINS);
});

type Case = [toolName: string, args: Record<string, unknown>, expected: unknown];

const cases: Case[] = JSON.parse(read('./cases.json'));

describe('each tool does what it says', () => {
  test.each(cases)('%s %j', async (toolName, args, expected) => {
    const client = await loaded();
    const outcome = await client.execute({ toolName, args }).catch(({ message }) => ({ error: message }));
    expect(outcome).toMatchObject(expected as object);
  });
  test('every tool has a case', async () => {
    const names = (await loaded()).getClientToolDefinitions().map(({ name }) => name);
    expect(new Set(cases.map(([name]) => name))).toEqual(new Set(names));
  });
});

test('the time is the time, in its zone', async () => {
  const client = await loaded();
  const before = Date.now();
  const { time } = (await client.execute({ toolName: 'get_current_time', args: {} })) as { time: string };
  expect(Date.parse(time)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
});
