import type { Browser, BrowserContext, Page } from 'playwright-core';
import { chromium } from 'playwright-core';

/** More requests than any conversation here needs. */
const POSTS_MAX = 12;

export function startBrowser(): Promise<Browser> {
  return chromium.launch({
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
  });
}

/** A tab with the page in it. */
export class Tab {
  readonly page: Page;
  /** Turns that the page has posted. */
  posts = 0;
  /** What went wrong in it. */
  readonly errors: string[] = [];

  private constructor(page: Page) {
    this.page = page;
  }

  static async open(context: BrowserContext, url: string): Promise<Tab> {
    const tab = new Tab(await context.newPage());
    tab.page.on('pageerror', (error) => tab.errors.push(error.message));
    await tab.page.route('**/chat?*', (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      tab.posts += 1;
      return tab.posts > POSTS_MAX ? route.abort() : route.continue();
    });
    // A page that speaks before it knows whether there is something to resume would read its own answer twice.
    const resumed = tab.page.waitForResponse((response) => /\/stream\?/.test(response.url()));
    await tab.page.goto(url);
    await resumed;
    await tab.page.locator('main:not([data-status=submitted])').waitFor();
    return tab;
  }

  async say(text: string): Promise<void> {
    await this.page.getByLabel('message').fill(text);
    await this.page.getByLabel('message').press('Enter');
  }
  async press(name: string): Promise<void> {
    await this.page.getByRole('button', { name, exact: true }).click();
  }
  /** What the agent has said. */
  words(): Promise<string[]> {
    return this.page.locator('article[data-role=assistant] p').allInnerTexts();
  }
  /** How each call of a tool stands: its state, its input and what it gave. */
  async calls(tool: string): Promise<string[]> {
    const calls = await this.page.locator(`[data-tool=${tool}]`).all();
    return Promise.all(
      calls.map(async (call) => `${await call.getAttribute('data-state')} ${await call.textContent()}`),
    );
  }
  /** Tools that the page has run, in order. */
  ran(): Promise<string> {
    return this.page.evaluate(() => document.body.dataset.ran ?? '');
  }
  /** `ready`, `submitted`, `streaming` or `error`. */
  status(): Promise<string | null> {
    return this.page.locator('main').getAttribute('data-status');
  }
  /** Lets the page do what it has begun: a client that sends again does so within a few turns of its loop. */
  async rest(): Promise<void> {
    await this.page.waitForFunction(() => document.querySelector('main')?.dataset.status === 'ready');
    await this.page.evaluate(async () => {
      for (let turn = 0; turn < 30; turn += 1) await new Promise((resolve) => setTimeout(resolve));
    });
  }
}
