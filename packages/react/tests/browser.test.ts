import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startGateway } from '@toolgate/test-support';
import { type Browser, chromium, type Page } from 'playwright-core';
import { createServer, type ViteDevServer } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startWorld, type World } from './world.js';

const PAGE = fileURLToPath(new URL('page', import.meta.url));
/** How long anything may take on a busy machine; what works is much faster. */
const WAIT_MS_MAX = 25_000;
const WAIT = { timeout: WAIT_MS_MAX };
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
const SLOW = {
  name: 'slow',
  description: 'Takes as long as it takes.',
  parameters: { type: 'object' as const },
};

describe('in a browser', () => {
  let world: World;
  let vite: ViteDevServer;
  let browser: Browser;

  beforeAll(async () => {
    world = await startWorld();
    vite = await createServer({
      root: PAGE,
      logLevel: 'error',
      cacheDir: `${PAGE}/node_modules/.vite`,
      server: { port: 0, host: '127.0.0.1', proxy: { '/v1': world.gateway.url } },
    });
    await vite.listen();
    browser = await chromium.launch(CHROMIUM);
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    await vite?.close();
    await world?.stop();
  });

  /** A page in the space that writes down the calls it executes. */
  async function visit(space: string, log: string[], options = ''): Promise<Page> {
    const page = await browser.newPage();
    page.setDefaultTimeout(WAIT_MS_MAX);
    await page.exposeFunction('executing', (callId: string) => log.push(callId));
    const address = vite.resolvedUrls?.local[0];
    await page.goto(`${address}?key=${world.gateway.secretKey}&space=${space}${options}`);
    await page.getByText('slow is offered').waitFor();
    return page;
  }

  async function newSpace(): Promise<string> {
    return (await world.client.spaces.create()).id;
  }

  async function askForSlow(space: string): Promise<void> {
    await world.client.spaces.post(space, { message: 'slow', clientTools: [SLOW] });
  }

  async function finish(page: Page, result: string): Promise<void> {
    await page.waitForFunction(() => window.finish !== undefined);
    await page.evaluate((value) => window.finish?.(value), result);
  }

  /** How often the call was claimed, as the gateway wrote it down. */
  async function claims(space: string): Promise<number> {
    const stream = world.client.spaces.subscribe(space);
    let count = 0;
    for await (const event of stream) {
      if (event.type === 'tool-executing') count += 1;
      if (event.type === 'run-finish') break;
    }
    stream.close();
    return count;
  }

  test('a call is claimed once and executed once, in StrictMode too', async () => {
    const executed: string[] = [];
    const space = await newSpace();
    const page = await visit(space, executed);
    await askForSlow(space);
    await finish(page, 'teapot');
    await page.getByText('It gave teapot.').waitFor();
    expect(executed).toHaveLength(1);
    expect(await claims(space)).toBe(1);
    await page.close();
  });

  test('a reload in mid call takes the call again', async () => {
    const executed: string[] = [];
    const space = await newSpace();
    const page = await visit(space, executed);
    await askForSlow(space);
    await expect.poll(() => executed, WAIT).toHaveLength(1);
    await page.reload();
    await expect.poll(() => executed, WAIT).toHaveLength(2);
    expect(executed[1]).toBe(executed[0]);
    await finish(page, 'after the reload');
    await page.getByText('It gave after the reload.').waitFor();
    await page.close();
  });

  test('of two tabs one executes, and both see the result', async () => {
    const executed: string[] = [];
    const space = await newSpace();
    const [one, two] = await Promise.all([visit(space, executed), visit(space, executed)]);
    await askForSlow(space);
    await expect.poll(() => executed, WAIT).toHaveLength(1);
    const isOne = await one.evaluate(() => window.finish !== undefined);
    await finish(isOne ? one : two, 'teapot');
    await Promise.all([one, two].map((page) => page.getByText('It gave teapot.').waitFor()));
    expect(executed).toHaveLength(1);
    expect(await claims(space)).toBe(1);
    await Promise.all([one.close(), two.close()]);
  });

  test('when the tab that executes goes away, the other takes over', async () => {
    const executed: string[] = [];
    const space = await newSpace();
    const one = await visit(space, executed);
    await askForSlow(space);
    await expect.poll(() => executed, WAIT).toHaveLength(1);
    const two = await visit(space, executed);
    await one.goto('about:blank');
    await expect.poll(() => executed, WAIT).toHaveLength(2);
    await finish(two, 'from the second');
    await two.getByText('It gave from the second.').waitFor();
    await Promise.all([one.close(), two.close()]);
  });

  test('an unmount gives the call back, and whoever mounts again takes it', async () => {
    const executed: string[] = [];
    const space = await newSpace();
    const page = await visit(space, executed);
    await askForSlow(space);
    await expect.poll(() => executed, WAIT).toHaveLength(1);
    await page.getByRole('button', { name: 'Toggle' }).click();
    await page.getByText('Waiting for a client').waitFor();
    await page.evaluate(() => {
      delete window.finish;
    });
    await page.getByRole('button', { name: 'Toggle' }).click();
    await expect.poll(() => executed, WAIT).toHaveLength(2);
    await finish(page, 'second wind');
    await page.getByText('It gave second wind.').waitFor();
    await page.close();
  });

  test('an unmount lets the work finish where that is asked for', async () => {
    const executed: string[] = [];
    const space = await newSpace();
    const page = await visit(space, executed, '&onUnmount=finish');
    await askForSlow(space);
    await expect.poll(() => executed, WAIT).toHaveLength(1);
    await page.getByRole('button', { name: 'Toggle' }).click();
    await finish(page, 'to the end');
    await page.getByText('It gave to the end.').waitFor();
    expect(executed).toHaveLength(1);
    await page.close();
  });

  test('the first screen of the README works, from an origin of its own', async () => {
    const gateway = await startGateway({ env: { TOOLGATE_HTTP_ORIGINS: '*' } });
    onTestFinished(gateway.stop);
    const root = await mkdtemp(`${PAGE}/first-screen-`);
    onTestFinished(() => rm(root, { recursive: true }));
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
    const [, app = ''] = /```tsx\n([\s\S]*?)```/.exec(readme) ?? [];
    const main = `import { createRoot } from 'react-dom/client';
      import App from './app.tsx';
      createRoot(document.body).render(<App />);`;
    await writeFile(
      join(root, 'app.tsx'),
      app.replace('http://127.0.0.1:8787', gateway.url).replace('sk_…', gateway.secretKey),
    );
    await writeFile(join(root, 'main.tsx'), main);
    await writeFile(
      join(root, 'index.html'),
      '<title>Spout</title><script type="module" src="./main.tsx"></script>',
    );
    const server = await createServer({ root, logLevel: 'error', server: { port: 0, host: '127.0.0.1' } });
    onTestFinished(() => server.close());
    await server.listen();
    const page = await browser.newPage();
    await page.goto(server.resolvedUrls?.local[0] ?? '');
    await page.getByRole('button', { name: 'What is the page title?' }).click();
    await page.getByText('pageTitle gave "Spout"').waitFor();
    await page.getByRole('textbox').fill('Send email to ada@example.com');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('send_email gave').waitFor();
    await page.close();
  });

  test('the stop button cancels a run that waits', async () => {
    const space = await newSpace();
    const page = await visit(space, []);
    await page.getByRole('button', { name: 'Toggle' }).click();
    await askForSlow(space);
    await page.getByText('Waiting for a client').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Failed:').waitFor();
    const { runs } = await world.client.spaces.runs(space);
    expect(runs.map((run) => run.status)).toEqual(['cancelled']);
    await page.close();
  });
});
