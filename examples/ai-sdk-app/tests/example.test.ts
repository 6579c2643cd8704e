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

  async function say(text: string): Promise<void> {
    await page.getByLabel('Message').fill(text);
    await page.keyboard.press('Enter');
  }
  const suggested = (name: RegExp) => page.getByRole('button', { name });
  const lastCall = () => page.locator('.call').last();
  const paint = () => page.evaluate(() => document.documentElement.style.getPropertyValue('--paint'));

  test('suggests what to say, and lets the agent paint the page', async () => {
    await suggested(/^Paint page/).click();
    await page.getByText('paint_page gave "The page is rebeccapurple now."').waitFor();
    expect(await paint()).toBe('rebeccapurple');
    expect(await lastCall().getAttribute('data-state')).toBe('output-available');
  });

  test('tells the agent when a function fails', async () => {
    await say('Please paint page "no such colour".');
    await page.getByText('[demo model]').getByText('is not a CSS colour').waitFor();
    expect(await lastCall().getAttribute('data-state')).toBe('output-error');
  });

  test.each([390, 1280])('shows JSON that does not overflow a page of %i pixels', async (width) => {
    await page.setViewportSize({ width, height: 800 });
    const calls = await page.locator('.call').count();
    await say('Please describe page.');
    await expect.poll(() => page.locator('.call').count()).toBe(calls + 1);
    await expect.poll(() => lastCall().getAttribute('data-state')).toBe('output-available');
    await lastCall().getByText('Input and output').click();
    await lastCall().getByText('pixelRatio').waitFor();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow).toBe(0);
    expect(await page.evaluate(() => document.querySelector('.conversation')?.scrollLeft)).toBe(0);
  });

  test('asks before a card is sent, over a reload, and sends it after a yes', async () => {
    await say('Send postcard "Ada" "Greetings"');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.reload();
    await page.getByText('Please describe page.').first().waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('send_postcard gave {"to":"Ada","words":"Greetings"}').waitFor();
    expect(await lastCall().getAttribute('data-state')).toBe('output-available');
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
  });

  test('sends no card after a no', async () => {
    await say('Send postcard "Bob" "Greetings"');
    await page.getByRole('button', { name: 'Reject' }).click();
    await expect.poll(() => lastCall().getAttribute('data-state')).toBe('output-denied');
    await expect.poll(() => page.getByRole('button', { name: 'Send' }).count()).toBe(1);
  });

  test('keeps the conversation over a reload', async () => {
    const before = await page.getByRole('log').textContent();
    await page.reload();
    await expect.poll(() => page.getByRole('log').textContent()).toBe(before);
  });

  test('says what went wrong, and sends the message again once', async () => {
    await page.route('**/api/chat', (route) => route.abort(), { times: 1 });
    await say('Hello after the storm');
    await page.getByRole('alert').getByText('The server could not be reached.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('[demo model] Hello!').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.reload();
    await page.getByText('[demo model] Hello!').waitFor();
    expect(await page.locator('article.user', { hasText: 'Hello after the storm' }).count()).toBe(1);
  });

  test('begins anew, and finds the earlier conversation by its address', async () => {
    const earlier = page.url();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await suggested(/^Paint page/).waitFor();
    expect(page.url()).not.toBe(earlier);
    await page.goto(earlier);
    await page.getByText('Hello after the storm').first().waitFor();
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
