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
  executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium',
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

describe('the example', () => {
  let data: string;
  let started: ChildProcess;
  let browser: Browser;
  let page: Page;
  let address: string;

  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'toolgate-example-'));
    const { TOOLGATE_URL: _, ...env } = process.env;
    started = spawn(process.execPath, ['start.js'], {
      cwd: FOLDER,
      env: { ...env, PORT: '0', TOOLGATE_DATA: data },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    address = await addressOf(started);
    browser = await chromium.launch(CHROMIUM);
    page = await browser.newPage();
    await page.goto(address);
  });

  afterAll(async () => {
    await browser?.close();
    if (started?.exitCode === null) {
      started.kill('SIGTERM');
      await once(started, 'exit');
    }
    // The gateway may still be on its way out.
    await rm(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });

  test('lets the agent paint the page', async () => {
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('paint_page gave "The page is rebeccapurple now."').waitFor();
    expect(await page.evaluate(() => document.body.style.background)).toBe('rebeccapurple');
    expect(await page.locator('pre').getAttribute('data-state')).toBe('output-available');
  });

  test('tells the agent when a function fails', async () => {
    await page.getByLabel('Message').fill('Please paint page "no such colour".');
    await page.keyboard.press('Enter');
    await page.getByText('[demo model]').getByText('is not a CSS colour').waitFor();
    expect(await page.locator('pre').last().getAttribute('data-state')).toBe('output-error');
  });

  test('keeps the chats of its visitors apart', async () => {
    const api = new URL('/api/chat', address).href;
    const headers = { 'content-type': 'application/json' };
    const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'My secret is teapot.' }] };
    const said = await fetch(api, {
      method: 'POST',
      headers,
      body: JSON.stringify({ id: 'mine', messages: [message], trigger: 'submit-message' }),
    });
    const stream = await said.text();
    const cookie = said.headers.get('set-cookie')?.split(';')[0] ?? '';
    const [, space = ''] = /"spaceId":"(space_\w+)"/.exec(stream) ?? [];
    expect(space).not.toBe('');
    const read = async (chat: string, sent: Record<string, string>): Promise<string> =>
      (await fetch(`${api}/${chat}`, { headers: sent })).text();
    for (const chat of ['mine', space]) {
      expect(await read(chat, {})).not.toContain('teapot');
      expect(await read(chat, { cookie: 'session=guessed' })).not.toContain('teapot');
    }
    expect(await read('mine', { cookie })).toContain('teapot');
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
