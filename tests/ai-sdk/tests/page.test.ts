import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Site, startSite } from '../src/page.ts';
import { useScene } from '../src/scene.ts';
import type { Dialect } from '../src/sdk.ts';
import { startBrowser, Tab } from '../src/tab.ts';
import { serverTool } from '../src/world.ts';

const scene = useScene({ config: '[http]\norigins = ["*"]\n' });
let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

const inParis = { city: 'Paris' };
const shown = { visibility: 'public' };

describe.each<Dialect>(['v5', 'v6', 'v7'])('useChat of %s in Chromium', (dialect) => {
  let site: Site;
  let context: BrowserContext;
  let agent: string;
  let tabs: Tab[] = [];
  beforeAll(async () => {
    site = await startSite(dialect);
    agent = await scene.world.agent({
      tools: [
        serverTool('lookup', 'seven', shown),
        { ...serverTool('refund', null, shown), execution: { mode: 'pass-through' }, approval: 'always' },
      ],
    });
  });
  afterAll(() => site?.stop());
  beforeEach(async () => {
    context = await browser.newContext();
  });
  afterEach(async () => {
    const errors = tabs.flatMap((tab) => tab.errors);
    tabs = [];
    await context.close();
    expect(errors).toEqual([]);
  });
  const open = async (chat: string): Promise<Tab> => {
    const { gateway } = scene.world;
    const asked = new URLSearchParams({
      gateway: gateway.url,
      agent,
      chat,
      dialect,
      key: gateway.publicKey,
      token: gateway.token('ada'),
    });
    const tab = await Tab.open(context, `${site.url}?${asked}`);
    tabs.push(tab);
    return tab;
  };
  const opened = () => open(crypto.randomUUID());

  it('shows text', async () => {
    scene.world.script('Hello from the agent.');
    const tab = await opened();
    await tab.say('hello');
    await expect.poll(() => tab.words()).toEqual(['Hello from the agent.']);
    await tab.rest();
    expect(tab.posts).toBe(1);
  });

  it('runs a function of the page', async () => {
    scene.world.script({ calls: [{ name: 'weather', args: inParis }] }, 'It is sunny.');
    const tab = await opened();
    await tab.say('weather?');
    await expect.poll(() => tab.words()).toEqual(['It is sunny.']);
    expect(await tab.calls('weather')).toEqual([
      'output-available {"city":"Paris"} {"sky":"sunny","in":"Paris"}',
    ]);
    await tab.rest();
    expect(await tab.ran()).toBe('weather');
    expect(tab.posts).toBe(2);
  });

  it('tells the model when a function fails', async () => {
    scene.world.script({ calls: [{ name: 'broken' }] }, 'I am sorry.');
    const tab = await opened();
    await tab.say('try');
    await expect.poll(() => tab.words()).toEqual(['I am sorry.']);
    expect(await tab.calls('broken')).toEqual(['output-error {} no such thing in this page']);
    expect(JSON.stringify(scene.world.asked.at(-1))).toContain('no such thing in this page');
    await tab.rest();
    expect(tab.posts).toBe(2);
  });

  it('runs two functions and goes on with one request', async () => {
    scene.world.script({ calls: [{ name: 'weather', args: inParis }, { name: 'clock' }] }, 'A sunny noon.');
    const tab = await opened();
    await tab.say('both?');
    await expect.poll(() => tab.words()).toEqual(['A sunny noon.']);
    await tab.rest();
    expect(await tab.ran()).toBe('weather clock');
    expect(tab.posts).toBe(2);
  });

  it('mixes functions of the page with tools of the gateway', async () => {
    scene.world.script({ calls: [{ name: 'lookup' }, { name: 'clock' }] }, 'Seven at noon.');
    const tab = await opened();
    await tab.say('stock and time?');
    await expect.poll(() => tab.words()).toEqual(['Seven at noon.']);
    expect(await tab.calls('lookup')).toEqual(['output-available {} "seven"']);
    expect(await tab.calls('clock')).toEqual(['output-available {} "noon"']);
    await tab.rest();
    expect(await tab.ran()).toBe('clock');
    expect(tab.posts).toBe(2);
  });

  it.each([
    ['yes', 'output-available {"city":"Paris"} {"city":"Paris"}'],
    ['no', dialect === 'v5' ? 'output-error {"city":"Paris"}' : 'output-denied {"city":"Paris"}'],
    ['yes, but Rome', 'output-available {"city":"Rome"} {"city":"Rome"}'],
  ])('takes a "%s" from a person', async (word, outcome) => {
    scene.world.script({ calls: [{ name: 'refund', args: inParis }] }, 'As you wish.');
    const tab = await opened();
    await tab.say('refund me');
    await tab.press(word);
    await expect.poll(() => tab.words()).toEqual(['As you wish.']);
    expect(await tab.calls('refund')).toEqual([expect.stringContaining(outcome)]);
    await tab.rest();
    expect(tab.posts).toBe(2);
  });

  it('stops the agent', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ text: 'One two three.', hold: hold.promise });
    const tab = await opened();
    await tab.say('count');
    await expect.poll(() => tab.words()).toEqual(['One']);
    await tab.press('stop');
    await tab.rest();
    hold.resolve();
    expect(await tab.words()).toEqual(['One']);
    expect(tab.posts).toBe(1);
  });

  it('goes on after a reload in mid-stream', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ text: 'One two three.', hold: hold.promise });
    const tab = await opened();
    await tab.say('count');
    await expect.poll(() => tab.words()).toEqual(['One']);
    await tab.page.reload();
    await expect.poll(() => tab.words()).toEqual(['One']);
    hold.resolve();
    await expect.poll(() => tab.words()).toEqual(['One two three.']);
    expect(await tab.page.locator('article').count()).toBe(2);
    await tab.rest();
    expect(tab.posts).toBe(1);
  });

  it('does not run a function again after a reload', async () => {
    const hold = Promise.withResolvers<void>();
    scene.world.script({ calls: [{ name: 'clock' }] }, { text: 'It is noon.', hold: hold.promise });
    const tab = await opened();
    await tab.say('time?');
    await expect.poll(() => tab.words()).toEqual(['It']);
    await tab.page.reload();
    await expect.poll(() => tab.words()).toEqual(['It']);
    hold.resolve();
    await expect.poll(() => tab.words()).toEqual(['It is noon.']);
    await tab.rest();
    expect(await tab.ran()).toBe('');
    expect(tab.posts).toBe(2);
  });

  it('shows the whole chat after a reload at rest', async () => {
    scene.world.script({ calls: [{ name: 'clock' }] }, 'It is noon.');
    const tab = await opened();
    await tab.say('time?');
    await expect.poll(() => tab.words()).toEqual(['It is noon.']);
    await tab.rest();
    await tab.page.reload();
    await expect.poll(() => tab.words()).toEqual(['It is noon.']);
    expect(await tab.calls('clock')).toEqual(['output-available {} "noon"']);
    await tab.rest();
    expect(await tab.ran()).toBe('');
    expect(tab.posts).toBe(2);
  });

  it('shows a second tab the same answer, and takes one decision', async () => {
    scene.world.script({ calls: [{ name: 'refund', args: inParis }] }, 'As you wish.');
    const chat = crypto.randomUUID();
    const first = await open(chat);
    await first.say('refund me');
    await first.page.getByRole('button', { name: 'yes', exact: true }).waitFor();
    const second = await open(chat);
    await second.page.getByRole('button', { name: 'no', exact: true }).waitFor();
    await first.press('yes');
    await expect.poll(() => first.words()).toEqual(['As you wish.']);
    await second.press('no');
    await expect.poll(() => second.words()).toEqual(['As you wish.']);
    for (const tab of [first, second]) {
      expect(await tab.calls('refund')).toEqual(['output-available {"city":"Paris"} {"city":"Paris"}']);
      await tab.rest();
    }
    expect([first.posts, second.posts]).toEqual([2, 1]);
    expect(scene.world.asked).toHaveLength(2);
  });

  it('lets a second tab answer when the first is gone', async () => {
    scene.world.script({ calls: [{ name: 'clock' }] }, 'It is noon.');
    const chat = crypto.randomUUID();
    const first = await open(chat);
    await first.page.route('**/chat?*', (route) => (first.posts > 0 ? route.abort() : route.fallback()));
    await first.say('time?');
    await expect.poll(() => first.status()).toBe('error');
    expect(await first.ran()).toBe('clock');
    await first.page.close();
    const second = await open(chat);
    await expect.poll(() => second.words()).toEqual(['It is noon.']);
    await second.rest();
    expect(await second.ran()).toBe('clock');
    expect(second.posts).toBe(1);
  });
});
