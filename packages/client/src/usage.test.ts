import { expect, test } from 'vitest';
import { ToolgateClient } from './client.js';
import type { UsageReport } from './wire.js';

const sums = {
  runs: 1,
  requests: 1,
  inputTokens: 10,
  outputTokens: 5,
  cachedTokens: 0,
  cost: 0.5,
  unpricedRequests: 0,
};

/** A client whose requests are answered by `answer`, and the addresses that it asked. */
function against(answer: (url: URL) => unknown): { client: ToolgateClient; asked: string[] } {
  const asked: string[] = [];
  const fetch = async (input: RequestInfo | URL): Promise<Response> => {
    const url = new URL(String(input));
    asked.push(url.pathname + url.search);
    return Response.json(answer(url));
  };
  return { client: new ToolgateClient({ url: 'http://gateway.test', key: 'sk_test', fetch }), asked };
}

const page = (key: string, nextCursor: string | null): UsageReport => ({
  from: '2026-11-01',
  to: '2026-11-18',
  currency: 'USD',
  total: sums,
  rows: [{ key, ...sums }],
  nextCursor,
});

test('a report is asked for with what was given', async () => {
  const { client, asked } = against(() => page('ada', null));
  const report = await client.usage.get({ from: '2026-11-01', by: 'user', limit: 1 });
  expect(report.rows[0]).toMatchObject({ key: 'ada', cost: 0.5 });
  await client.usage.ofProject('a shop');
  expect(asked).toEqual(['/v1/usage?from=2026-11-01&by=user&limit=1', '/v1/projects/a%20shop/usage']);
});

test('rows come page by page', async () => {
  const { client, asked } = against((url) =>
    url.searchParams.has('after') ? page('bob', null) : page('ada', 'ada'),
  );
  const keys = [];
  for await (const row of client.usage.rows({ by: 'agent' })) keys.push(row.key);
  expect(keys).toEqual(['ada', 'bob']);
  expect(asked).toEqual(['/v1/usage?by=agent', '/v1/usage?by=agent&after=ada']);
});

test('budgets are those of the caller or of whom it names', async () => {
  const { client, asked } = against(() => ({
    currency: 'USD',
    budgets: [{ scope: 'agent', period: 'day' }],
  }));
  expect(await client.usage.budgets({ agent: 'default' })).toHaveLength(1);
  expect(asked).toEqual(['/v1/budgets?agent=default']);
});
