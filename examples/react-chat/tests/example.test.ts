import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('..', import.meta.url));
const CHROMIUM = {
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
};

/** Messages that two tabs send by turns. */
const REPETITIONS = 20;

describe('the example', () => {
  let data: string;
  let started: ChildProcess;
  let address: string;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'toolgate-example-'));
    started = spawn(process.execPath, ['start.js'], {
      cwd: FOLDER,
      env: { ...process.env, PORT: '0', TOOLGATE_DATA: data },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    address = await addressOf(started);
    browser = await chromium.launch(CHROMIUM);
    page = await browser.newPage();
    await page.goto(address);
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    if (started?.exitCode === null) {
      started.kill('SIGTERM');
      const [code] = await once(started, 'exit');
      expect(code).toBe(0);
    }
    // The gateway may still be on its way out.
    await rm(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });

  const suggested = (name: RegExp) => page.getByRole('button', { name });

  async function say(text: string): Promise<void> {
    await page.getByLabel('Message', { exact: true }).fill(text);
    await page.keyboard.press('Enter');
  }

  test('draws a chart with a tool of the page', async () => {
    await suggested(/^Show chart/).click();
    const chart = page.getByRole('img', { name: /^Teapots sold per quarter/ });
    await chart.waitFor();
    expect(await chart.locator('rect').count()).toBe(4);
    await page.getByText('showChart gave {"shown":4}').waitFor();
  });

  test('pays a refund after a yes to a changed amount', async () => {
    await say('I want 34.50 back: refund order "A-1042"');
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('amount').fill('20');
    await page.getByRole('button', { name: 'Approve changes' }).click();
    await page.getByText('refund_order gave {"orderNumber":"A-1042","amount":20}').waitFor();
  });

  test('asks, over a reload, and takes the answer of another tab', async () => {
    await say('Ask user "Which glaze?" "Cobalt" "Celadon"');
    await page.getByRole('button', { name: 'Celadon' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Celadon' }).waitFor();
    const other = await browser.newPage();
    await other.goto(page.url());
    await other.getByRole('button', { name: 'Celadon' }).click();
    // No tab holds a call whose result a component gives, so the answer counts at once.
    await page.getByText('askUser gave "Celadon"').waitFor({ timeout: 60_000 });
    expect(await page.getByRole('button', { name: 'Celadon' }).getAttribute('aria-pressed')).toBe('true');
  });

  test('the tab that sent the message executes its tools, not another one', async () => {
    const other = await browser.newPage();
    await other.goto(page.url());
    await other.getByText('askUser gave "Celadon"').waitFor();
    const posted = new Map<Page, number>([
      [page, 0],
      [other, 0],
    ]);
    for (const tab of posted.keys()) {
      tab.on('request', (request) => {
        if (request.url().endsWith('/tool-results')) posted.set(tab, (posted.get(tab) ?? 0) + 1);
      });
    }
    for (let round = 1; round <= REPETITIONS; round += 1) {
      const [sender, watcher] = round % 2 === 0 ? [page, other] : [other, page];
      const title = `Round ${round}`;
      await sender.getByLabel('Message', { exact: true }).fill(`Show chart "${title}": 1, 2, 3, 4`);
      await sender.getByLabel('Message', { exact: true }).press('Enter');
      for (const tab of [sender, watcher]) {
        await tab.getByText('showChart gave {"shown":4}').nth(round).waitFor({ timeout: 30_000 });
      }
      expect([posted.get(sender), posted.get(watcher)]).toEqual([
        Math.ceil(round / 2),
        Math.floor(round / 2),
      ]);
    }
    await other.close();
  }, 300_000);

  test('begins anew', async () => {
    await page.getByRole('button', { name: 'New conversation' }).click();
    await suggested(/^Show chart/).waitFor();
    expect(new URL(page.url()).hash).toBe('');
  });
});

/** Where the page is, from what `start.js` prints. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = '';
    child.once('exit', (code) => reject(new Error(`start.js ended with ${code}: ${seen}`)));
    child.stdout?.on('data', (piece: Buffer) => {
      seen += piece;
      const address = /Open (http:\S+)/.exec(seen)?.[1];
      if (address) resolve(address);
    });
  });
}
