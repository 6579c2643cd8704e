import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Gateway, type Model, type ModelReply, startGateway, startModel } from '@toolgate/test-support';
import { type Browser, type BrowserContext, chromium, type Page, type Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';

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
    started = start({ TOOLGATE_DATA: data });
    address = await addressOf(started);
    browser = await chromium.launch(CHROMIUM);
    page = await browser.newPage();
    await page.goto(address);
  });

  afterAll(async () => {
    await browser?.close();
    await stop(started);
    // The gateway may still be on its way out.
    await rm(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });

  const say = (text: string) => sayIn(page, text);
  const suggested = (name: RegExp) => page.getByRole('button', { name });
  const lastCall = () => page.locator('.call').last();
  const paint = () => paintOf(page);

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

  test.each<[string, (route: Route) => Promise<void>]>([
    ['a connection', (route) => route.abort()],
    ['a body, as a proxy answers without a gateway', (route) => route.fulfill({ status: 500 })],
  ])('says what went wrong without %s, and sends the message again once', async (lacking, answer) => {
    await page.route('**/api/chat', answer, { times: 1 });
    const greetings = await page.getByText('[demo model] Hello!').count();
    const message = `Hello without ${lacking}`;
    await say(message);
    await page.getByRole('alert').getByText('The server could not be reached.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect.poll(() => page.getByText('[demo model] Hello!').count()).toBe(greetings + 1);
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.reload();
    await page.getByText('[demo model] Hello!').last().waitFor();
    expect(await page.locator('article.user', { hasText: message }).count()).toBe(1);
  });

  test('says in words why a conversation cannot be loaded, and loads it again', async () => {
    const detail = 'too many requests: try again in 3 seconds';
    const problem = {
      type: 'about:blank',
      title: 'Too Many Requests',
      status: 429,
      code: 'RATE_LIMITED',
      detail,
    };
    const isPast = (url: URL) => /\/api\/chat\/[^/]+$/.test(url.pathname);
    await page.route(isPast, (route) => route.fulfill({ status: 429, json: problem }));
    onTestFinished(() => page.unroute(isPast));
    await page.reload();
    const alert = page.getByRole('alert').locator('p');
    await expect
      .poll(() => alert.textContent())
      .toBe('The conversation could not be loaded. Too many requests: try again in 3 seconds.');
    await page.unroute(isPast);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('[demo model] Hello!').last().waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('shows what it asks, also to a reader who has scrolled up and opened a card', async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.locator('.call').first().getByText('Input and output').click();
    await page.locator('.conversation').evaluate((element) => element.scrollTo({ top: 0 }));
    await lastCall().getByText('Input').scrollIntoViewIfNeeded();
    await page.mouse.move(640, 400);
    // Chromium scrolls smoothly: what it still scrolls later would count as the reader's.
    const scrolled = await page.locator('.conversation').evaluateHandle((element) => ({
      end: new Promise((resolve) => element.addEventListener('scrollend', () => resolve(true))),
    }));
    await page.mouse.wheel(0, -600);
    await scrolled.evaluate(({ end }) => end);
    await say('Send postcard "Eve" "Greetings"');
    const approve = page.getByRole('button', { name: 'Approve' });
    await approve.waitFor();
    await expect.poll(() => approve.evaluate(isInView)).toBe(true);
    await page.getByRole('button', { name: 'Reject' }).click();
    await expect.poll(() => lastCall().getAttribute('data-state')).toBe('output-denied');
  });

  test('begins anew, and finds the earlier conversation by its address', async () => {
    const earlier = page.url();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await suggested(/^Paint page/).waitFor();
    expect(page.url()).not.toBe(earlier);
    await page.goto(earlier);
    await page.getByText('Hello without a connection').first().waitFor();
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

describe('the example with a model that follows a script', () => {
  const jwtSecret = 'a secret of this test, which is long enough';
  let script: Array<string | ModelReply> = [];
  let model: Model;
  let gateway: Gateway;
  let started: ChildProcess;
  let address: string;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    model = await startModel(() => script.shift() ?? 'Nothing more.');
    gateway = await startGateway({ model, env: { TOOLGATE_JWT_SECRET: jwtSecret } });
    started = start({
      TOOLGATE_URL: gateway.url,
      TOOLGATE_SECRET_KEY: gateway.secretKey,
      TOOLGATE_PUBLIC_KEY: gateway.publicKey,
      TOOLGATE_JWT_SECRET: jwtSecret,
    });
    address = await addressOf(started);
    browser = await chromium.launch(CHROMIUM);
  });
  afterAll(async () => {
    await browser?.close();
    await stop(started);
    await gateway?.stop();
    await model?.stop();
  });
  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    page = await openAt(address);
  });
  afterEach(() => context.close());

  /** A tab that knows whether an answer is under way: what is said before would be read twice. */
  const openAt = async (url: string): Promise<Page> => {
    const tab = await context.newPage();
    const resumed = tab.waitForResponse(/\/stream$/);
    await tab.goto(url);
    await resumed;
    return tab;
  };
  const say = (text: string) => sayIn(page, text);
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const isAtRest = () => button('Send').waitFor();

  test('says that there is no server, and loads the conversation when it is back', async () => {
    script = ['Hello.'];
    await say('Hello?');
    await isAtRest();
    await gateway.kill();
    onTestFinished(() => gateway.restart());
    await page.reload();
    const words = 'The conversation could not be loaded. The server could not be reached.';
    await expect.poll(() => page.getByRole('alert').locator('p').textContent()).toBe(words);
    await gateway.restart();
    await button('Try again').click();
    await page.getByText('Hello.', { exact: true }).waitFor();
  });

  test('stops an answer that has not begun', async () => {
    const held = gate();
    const spoken = gate();
    script = [{ text: 'One two three.', hold: spoken.promise }];
    await page.route('**/api/chat', async (route) => {
      await held.promise;
      await route.continue();
    });
    const cancelled = page.waitForResponse(/\/cancel$/);
    await say('Count.');
    await button('Stop').click();
    await button('Stopping…').waitFor();
    held.resolve();
    expect((await cancelled).status()).toBe(200);
    await page.getByText('Stopped.').waitFor();
    spoken.resolve();
    await isAtRest();
    expect(await page.getByText('three').count()).toBe(0);
  });

  test('says when an answer cannot be stopped, and tries again', async () => {
    const spoken = gate();
    script = ['A line.\n\n'.repeat(40), { text: 'One two three.', hold: spoken.promise }];
    await page.route('**/cancel', (route) => route.abort(), { times: 1 });
    await say('Much.');
    await isAtRest();
    await say('Count.');
    const begun = page.getByText('One', { exact: true });
    await begun.waitFor();
    await button('Stop').click();
    await page.getByText('The agent could not be stopped. The server could not be reached.').waitFor();
    await expect.poll(() => begun.evaluate(isInView)).toBe(true);
    await button('Try again').click();
    await page.getByText('Stopped.').waitFor();
    spoken.resolve();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test.each([390, 1280])('shows Markdown in a page of %i pixels, and no HTML', async (width) => {
    await page.setViewportSize({ width, height: 800 });
    const cells = Array.from({ length: 12 }, (_, index) => `column-${index}`);
    const row = (values: string[]) => `| ${values.join(' | ')} |`;
    const table = [row(cells), row(cells.map(() => '---')), row(cells)].join('\n');
    script = [`## Plan\n\n- **bold** and \`code\`\n\n${table}\n\n<img src=x onerror="document.title='bad'">`];
    await say('A **plan**, please.');
    await isAtRest();
    expect(await page.getByText('A **plan**, please.').count()).toBe(1);
    const answer = page.locator('article.assistant');
    expect(await answer.locator('li strong').textContent()).toBe('bold');
    expect(await answer.locator('tbody td').allTextContents()).toEqual(cells);
    expect(await answer.locator('img').count()).toBe(0);
    expect(await page.title()).not.toBe('bad');
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow).toBe(0);
  });

  const paints = (color: string): ModelReply => ({ calls: [{ name: 'paint_page', args: { color } }] });

  test('runs a function in the tab that sent the message, and shows the other what came of it', async () => {
    const joined = gate();
    script = [{ ...paints('teal'), text: 'I paint.', hold: joined.promise }, 'Painted.'];
    await say('Paint it.');
    await page.getByText('I').first().waitFor();
    const other = await openAt(page.url());
    await other.locator('article.assistant').waitFor();
    joined.resolve();
    for (const tab of [page, other]) await tab.getByText('Painted.').waitFor();
    expect(await paintOf(page)).toBe('teal');
    expect(await paintOf(other)).toBe('');
    // Then the tab that was only reading is used.
    script = [paints('olive'), 'Painted again.'];
    await sayIn(other, 'Another colour.');
    await other.getByText('Painted again.').waitFor();
    expect([await paintOf(page), await paintOf(other)]).toEqual(['teal', 'olive']);
  });

  test('runs a function in the browser that sent the message, and shows another what came of it', async () => {
    const joined = gate();
    script = [{ ...paints('teal'), text: 'I paint.', hold: joined.promise }, 'Painted.'];
    await say('Paint it.');
    await page.getByText('I').first().waitFor();
    // Of the same person, with storage and locks of its own.
    const elsewhere = await browser.newContext();
    onTestFinished(() => elsewhere.close());
    await elsewhere.addCookies(await context.cookies());
    const other = await elsewhere.newPage();
    await other.goto(page.url());
    await other.locator('article.assistant').waitFor();
    // The one that sent the message is slow: without its reservation the other would be first.
    const asked = gate();
    await page.route('**/claim', async (route) => {
      await asked.promise;
      await route.continue();
    });
    const refused = other.waitForResponse(/\/claim$/);
    joined.resolve();
    expect((await refused).status()).toBe(409);
    asked.resolve();
    for (const tab of [page, other]) await tab.getByText('Painted.').waitFor();
    expect([await paintOf(page), await paintOf(other)]).toEqual(['teal', '']);
  });

  /** Counts how often a tab runs `paint_page`. */
  const countPaints = (tab: Page) =>
    tab.addInitScript(() => {
      const { setProperty } = CSSStyleDeclaration.prototype;
      CSSStyleDeclaration.prototype.setProperty = function (name, ...rest) {
        if (name === '--paint') document.documentElement.dataset.paints += '|';
        setProperty.call(this, name, ...rest);
      };
    });
  const paintsOf = (tab: Page): Promise<number> =>
    tab.evaluate(() => (document.documentElement.dataset.paints ?? '').split('|').length - 1);
  const problem = (status: number, code: string, headers: Record<string, string> = {}) => ({
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
    body: JSON.stringify({ type: 'about:blank', title: code, status, code, detail: `${code} of the test` }),
  });
  const notFound = { status: 404, contentType: 'text/html', body: '<h1>Cannot POST /api/calls</h1>' };
  const limited = problem(429, 'RATE_LIMITED', { 'retry-after': '2' });

  test.each([
    {
      answered: 'with 429, which says when to ask again',
      answer: limited,
      times: 2,
      claims: 3,
      pauseMs: 2000,
    },
    { answered: 'with 408', answer: { status: 408 }, times: 1, claims: 2, pauseMs: 1000 },
    { answered: 'with 403', answer: problem(403, 'NOT_OFFERED'), claims: 1 },
    { answered: 'by a proxy that has no such route', answer: notFound, claims: 1 },
    { answered: 'with 502', answer: { status: 502 }, claims: 1 },
    { answered: 'with 404 all the time', answer: problem(404, 'NOT_FOUND'), claims: 2 },
    { answered: 'with 410 all the time', answer: problem(410, 'TIMEOUT'), claims: 2 },
  ])(
    'runs a function once when its claim is answered $answered',
    async ({ answer, times, claims, pauseMs }) => {
      const asked: number[] = [];
      await countPaints(page);
      const resumed = page.waitForResponse(/\/stream$/);
      await page.reload();
      await resumed;
      await page.route('**/claim', (route) => {
        asked.push(performance.now());
        return asked.length > (times ?? Infinity) ? route.continue() : route.fulfill(answer);
      });
      script = [paints('teal'), 'Painted.'];
      await say('Paint it.');
      await page.getByText('Painted.').waitFor();
      expect(await paintsOf(page)).toBe(1);
      expect(asked).toHaveLength(claims);
      const pauses = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
      if (pauseMs) expect(Math.min(...pauses)).toBeGreaterThan(pauseMs - 50);
      expect(await page.getByRole('alert').count()).toBe(0);
    },
  );

  test('says why it cannot show what another browser did, and tries again', async () => {
    script = [paints('teal'), 'Painted.'];
    await page.route('**/claim', (route) => route.fulfill(problem(410, 'TIMEOUT')), { times: 1 });
    await page.route(/\/api\/chat\/[^/]+$/, (route) => route.fulfill(limited), { times: 1 });
    await say('Paint it.');
    const words = 'The conversation could not be loaded. RATE_LIMITED of the test.';
    await expect.poll(() => page.getByRole('alert').locator('p').textContent()).toBe(words);
    await button('Try again').click();
    await page.getByText('Painted.').waitFor();
    expect(await paintOf(page)).toBe('teal');
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('goes on when one call is rejected and the page runs the other', async () => {
    const agent = `${gateway.url}/v1/agents/page-studio`;
    const headers = { authorization: `Bearer ${gateway.secretKey}`, 'content-type': 'application/json' };
    const config = await readFile(join(FOLDER, 'agent.json'), 'utf8');
    const put = async (body: string) =>
      expect((await fetch(agent, { method: 'PUT', headers, body })).ok).toBe(true);
    onTestFinished(() => put(config));
    const { tools, ...rest } = JSON.parse(config);
    const frame = {
      name: 'frame_page',
      description: 'Frames it.',

      approval: 'always',
    };
    await put(JSON.stringify({ ...rest, tools: [...tools, frame] }));
    const postcard = { name: 'send_postcard', args: { to: 'Ada', words: 'Hello' } };
    script = [{ calls: [postcard, { name: 'frame_page' }] }, 'Not sent.'];
    await say('Frame it and send a postcard.');
    const call = (name: string) => page.locator('.call', { hasText: name });
    await call('send_postcard').getByRole('button', { name: 'Reject' }).click();
    await call('frame_page').getByRole('button', { name: 'Approve' }).click();
    await page.getByText('Not sent.').waitFor();
    expect(await call('send_postcard').getAttribute('data-state')).toBe('output-denied');
    expect(await call('frame_page').textContent()).toContain('this page has no frame_page');
  });

  test('runs where it is not served securely', async () => {
    const insecure = 'http://192.0.2.1';
    const tab = await context.newPage();
    const failures: Error[] = [];
    tab.on('pageerror', (error) => failures.push(error));
    await tab.route(`${insecure}/**`, async (route) => {
      const url = route.request().url().replace(`${insecure}/`, address);
      await route.fulfill({ response: await route.fetch({ url }) });
    });
    await tab.goto(insecure);
    expect(await tab.evaluate(() => isSecureContext)).toBe(false);
    script = [paints('teal'), 'Painted.'];
    await sayIn(tab, 'Paint it.');
    await tab.getByText('Painted.').waitFor();
    expect(await paintOf(tab)).toBe('teal');
    expect(failures).toEqual([]);
  });

  test('runs where storage is blocked', async () => {
    const tab = await context.newPage();
    await tab.addInitScript(() => {
      const get = () => {
        throw new DOMException('blocked', 'SecurityError');
      };
      Object.defineProperty(window, 'localStorage', { get });
    });
    await tab.goto(address);
    script = [paints('teal'), 'Painted.'];
    await sayIn(tab, 'Paint it.');
    await tab.getByText('Painted.').waitFor();
    expect(await paintOf(tab)).toBe('teal');
  });

  test('runs a function in one of two tabs where there are no locks', async () => {
    await context.addInitScript(() => Object.defineProperty(navigator, 'locks', { value: undefined }));
    const joined = gate();
    script = [{ ...paints('teal'), text: 'I paint.', hold: joined.promise }, 'Painted.'];
    const first = await openAt(address);
    await sayIn(first, 'Paint it.');
    await first.getByText('I').first().waitFor();
    const second = await openAt(first.url());
    await second.locator('article.assistant').waitFor();
    joined.resolve();
    for (const tab of [first, second]) await tab.getByText('Painted.').waitFor();
    expect([await paintOf(first), await paintOf(second)]).toEqual(['teal', '']);
  });

  /** Results of the page are lost until they are let through. */
  const loseResults = async (): Promise<() => void> => {
    let areLost = true;
    await page.route('**/api/chat', (route) => {
      const { messages } = route.request().postDataJSON();
      return messages.at(-1).role === 'user' || !areLost ? route.continue() : route.abort();
    });
    return () => {
      areLost = false;
    };
  };

  test('runs a function in another tab when the one that sent the message is gone', async () => {
    script = [paints('teal'), 'Painted.'];
    await loseResults();
    await say('Paint it.');
    await expect.poll(() => paintOf(page)).toBe('teal');
    const other = await openAt(page.url());
    await other.locator('.call[data-state=input-available]').waitFor();
    expect(await paintOf(other)).toBe('');
    await page.close();
    await other.getByText('Painted.').waitFor();
    expect(await paintOf(other)).toBe('teal');
  });

  test('sends a lost result again, and does not run the function again', async () => {
    script = [paints('teal'), 'Painted.'];
    const letThrough = await loseResults();
    await say('Paint it.');
    await button('Try again').waitFor();
    await page.evaluate(() => document.documentElement.style.removeProperty('--paint'));
    letThrough();
    await button('Try again').click();
    await page.getByText('Painted.').waitFor();
    expect(await paintOf(page)).toBe('');
    expect(await page.locator('.call[data-state=output-available]').count()).toBe(1);
  });

  test('sends a lost decision again, and does not ask again', async () => {
    script = [{ calls: [{ name: 'send_postcard', args: { to: 'Ada', words: 'Hello' } }] }, 'Sent.'];
    const letThrough = await loseResults();
    await say('Send a postcard.');
    await button('Approve').click();
    await button('Try again').waitFor();
    letThrough();
    await button('Try again').click();
    await page.getByText('Sent.').waitFor();
    expect(await page.locator('.call[data-state=output-available]').count()).toBe(1);
  });

  test('runs a function again after a reload that lost its result', async () => {
    script = [paints('teal'), 'Painted.'];
    const letThrough = await loseResults();
    await say('Paint it.');
    await button('Try again').waitFor();
    letThrough();
    await page.reload();
    await page.getByText('Painted.').waitFor();
    expect(await paintOf(page)).toBe('teal');
  });
});

/** A promise that the test keeps when it likes. */
function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((keep) => {
    resolve = keep;
  });
  return { promise, resolve };
}

/** Whether all of it is in the part of the conversation that is seen. */
function isInView(element: Element): boolean {
  const { top, bottom } = element.getBoundingClientRect();
  const box = document.querySelector('.conversation')?.getBoundingClientRect();
  return box !== undefined && top >= box.top && bottom <= box.bottom;
}

async function sayIn(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  // A page that was just loaded looks for an answer under way first, and sends nothing until then.
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  await page.keyboard.press('Enter');
}

function paintOf(page: Page): Promise<string> {
  return page.evaluate(() => document.documentElement.style.getPropertyValue('--paint'));
}

/** The example's one command, on a free port. */
function start(env: Record<string, string>): ChildProcess {
  const { TOOLGATE_URL: _, ...inherited } = process.env;
  return spawn(process.execPath, ['start.js'], {
    cwd: FOLDER,
    env: { ...inherited, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function stop(started: ChildProcess | undefined): Promise<void> {
  if (started?.exitCode !== null) return;
  started.kill('SIGTERM');
  await once(started, 'exit');
}

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
