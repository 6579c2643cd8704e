import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from './world.ts';

const RUNS = 10_000;
const EVENTS = 5_000;

describe('long lists', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  test(`${RUNS} runs are scrolled to the end with few rows in the page`, async () => {
    const page = await world.open('/inbox');
    // Made here, because this is about the page: the gateway's own pages have the same form.
    await page.route('**/v1/runs?*', async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const first = Number(query.get('before')?.slice(4) ?? RUNS);
      const limit = Number(query.get('limit'));
      const runs = Array.from({ length: Math.min(limit, first) }, (_, index) => row(first - index - 1));
      const next = first - limit;
      await route.fulfill({ json: { runs, nextCursor: next > 0 ? `run_${next}` : null } });
    });
    await page.getByRole('link', { name: 'Runs' }).click();
    await page.getByText(`Message ${RUNS - 1}`, { exact: true }).waitFor();
    const list = page.getByLabel('Runs', { exact: true });
    await expect
      .poll(
        async () => {
          await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
          return page.getByText('Message 0', { exact: true }).count();
        },
        { timeout: 60_000, interval: 50 },
      )
      .toBe(1);
    expect(await list.locator('a').count()).toBeLessThan(80);
  });

  test(`${EVENTS} events of a run are searched and scrolled with few rows in the page`, async () => {
    const { runId, spaceId } = await world.client.runs.start('Use lookup_order for my order "A-1042".');
    const page = await world.open('/inbox');
    await page.route(`**/v1/runs/${runId}/events`, (route) =>
      route.fulfill({ contentType: 'text/event-stream', body: stream(runId as string, spaceId) }),
    );
    await page.evaluate((path) => history.pushState(null, '', path), `/runs/${runId}?tab=events`);
    await page.getByText(`${EVENTS.toLocaleString('en')} of`).waitFor();
    const list = page.getByLabel('Events', { exact: true });
    await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await list.getByRole('button', { name: /run-finish/ }).waitFor();
    expect(await list.getByRole('button').count()).toBeLessThan(100);
    await page.getByLabel('Search events').fill('"step":1234');
    await page.getByText(/^2 of/).waitFor();
  });
});

function row(index: number) {
  return {
    id: `run_${index}`,
    spaceId: `space_${index}`,
    agent: 'default',
    revision: 1,
    status: index % 7 === 0 ? 'failed' : 'completed',
    createdAt: '2026-01-01T00:00:00Z',
    updatedAt: '2026-01-01T00:00:01Z',
    seq: 1,
    title: `Message ${index}`,
    tokens: index,
  };
}

/** A run of many steps as the gateway streams it. */
function stream(runId: string, spaceId: string): string {
  const usage = { inputTokens: 1, outputTokens: 1 };
  const events: Record<string, unknown>[] = [
    {
      type: 'run-start',
      agent: 'default',
      revision: 1,
      depth: 0,
      tools: {},
      model: { provider: 'demo', name: 'demo' },
    },
  ];
  for (let step = 1; events.length < EVENTS - 1; step += 1)
    events.push({ type: 'step-start', step }, { type: 'step-finish', step, reason: 'stop', usage });
  events.length = EVENTS - 1;
  events.push({ type: 'run-finish', status: 'completed', reason: 'stop', usage });
  return events
    .map((event, index) => {
      const time = new Date(Date.UTC(2026, 0, 1) + index * 100).toISOString();
      const seq = (index + 1) * 1_000_000;
      return `id: ${seq}\ndata: ${JSON.stringify({ ...event, seq, runId, spaceId, time })}\n\n`;
    })
    .join('');
}
