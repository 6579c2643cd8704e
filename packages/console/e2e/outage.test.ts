import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startRun, startWorld, WAIT_MS_MAX, type World } from './world.ts';

const EMAIL = 'Use send_email to "ada@example.com" with the subject "Hello" and the body "First words."';
/** Attempts of the client until it reports that a request has failed, and one of the next round. */
const FAILURES = 5;
const BANNER = 'The gateway cannot be reached. Runs are stored';

describe('a gateway that is killed under an open page', () => {
  let world: World;
  let runId: string;

  beforeAll(async () => {
    world = await startWorld();
    ({ runId } = await startRun(world, EMAIL, 'waiting_approval'));
    await world.client.mcpServers.put('tools', {
      command: process.execPath,
      args: [new URL('../../client/tests/mcp-test-server.js', import.meta.url).pathname],
      review: 'always',
    });
    await vi.waitUntil(async () => (await world.client.mcpServers.get('tools')).held > 0, {
      timeout: WAIT_MS_MAX,
      interval: 50,
    });
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  /** Resolves when the page has been told that what it reads from there cannot be had. */
  function failed(page: Page, path: string): Promise<void> {
    return new Promise((resolve) => {
      let count = 0;
      page.on('requestfailed', (request) => {
        if (new URL(request.url()).pathname !== path) return;
        count += 1;
        if (count === FAILURES) resolve();
      });
    });
  }

  test('takes nothing off any list, and no word that was typed', async () => {
    const inbox = await world.open('/inbox');
    await inbox.getByRole('button', { name: 'Edit' }).click();
    await inbox.getByLabel('body').fill('Better words.');
    const runs = await world.open('/runs');
    const row = runs.locator(`a[href^="/runs/${runId}"]`);
    await row.waitFor();
    const review = await world.open('/tools?view=review');
    const held = review.getByRole('heading', { name: /^mcp_tools_/ });
    await held.first().waitFor();
    const names = await held.allTextContents();
    const log = await world.open('/mcp-servers/tools?tab=log');
    await log.getByRole('heading', { name: 'tools' }).waitFor();
    const overview = await world.open('/overview');
    await overview.getByRole('link', { name: /Use send_email/ }).waitFor();
    const all = [inbox, runs, review, log, overview];
    const down = Promise.all([
      failed(inbox, '/v1/approvals'),
      failed(runs, '/v1/runs'),
      failed(review, '/v1/mcp/servers'),
      failed(log, '/v1/mcp/servers/tools/log'),
      failed(overview, '/v1/overview'),
    ]);
    await world.gateway.kill();
    await Promise.all(all.map((page) => page.getByText(BANNER).waitFor()));
    await down;
    expect(await inbox.getByLabel('body').inputValue()).toBe('Better words.');
    expect(await row.count()).toBe(1);
    expect(await held.allTextContents()).toEqual(names);
    expect(await overview.getByRole('link', { name: /Use send_email/ }).count()).toBe(1);
    for (const page of all) expect(await page.getByRole('alert').count()).toBe(0);

    await world.gateway.restart();
    await Promise.all(all.map((page) => page.getByText(BANNER).waitFor({ state: 'detached' })));
    expect(await inbox.getByLabel('body').inputValue()).toBe('Better words.');
    await inbox.getByRole('button', { name: 'Approve with changes' }).click();
    await inbox.getByText('Nothing waits for you').waitFor();
    await row.getByText('Completed').waitFor();
    expect(JSON.stringify(await world.client.runs.get(runId))).toContain('Better words.');
  });

  test('lets a run that cannot be followed be tried again', async () => {
    const page = await world.open('/inbox');
    await page.getByText('Nothing waits for you').waitFor();
    let isRefused = true;
    await page.route(`**/v1/runs/${runId}/events`, (route) =>
      isRefused
        ? route.fulfill({ status: 404, json: { code: 'NOT_FOUND', detail: 'there is no such run' } })
        : route.continue(),
    );
    await page.evaluate((path) => history.pushState(null, '', path), `/runs/${runId}`);
    await page.getByText('there is no such run').waitFor();
    isRefused = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: /Use send_email/ }).waitFor();
  });
});

describe('many tabs', () => {
  /** Browsers open at most six connections to a host, for all tabs together. */
  const TABS = 8;
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  /** Says to the page whether somebody looks at it; the tests' browser shows all of its pages at once. */
  async function show(page: Page, isShown: boolean): Promise<void> {
    await page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, !isShown);
  }

  test('of one browser load and stay current, because those in the background hold no connection', async () => {
    const { runId } = await startRun(world, EMAIL, 'waiting_approval');
    const first = await world.open(`/runs/${runId}`);
    await first.getByRole('heading', { name: /Use send_email/ }).waitFor();
    await show(first, false);
    for (let tab = 2; tab <= TABS; tab += 1) {
      const page = await first.context().newPage();
      await page.goto(`${world.url}/runs/${runId}`);
      await page.getByRole('heading', { name: /Use send_email/ }).waitFor();
      if (tab < TABS) await show(page, false);
      else await page.getByRole('button', { name: 'Approve', exact: true }).click();
    }
    await show(first, true);
    await first.getByLabel('Detail').getByText('Completed').first().waitFor();
  });
});
