import AxeBuilder from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRun, startWorld, type World } from './world.ts';

/** Every screen. `{run}` and `{space}` stand for a run that waits and its space. */
const SCREENS = [
  '/chat',
  '/chat/{space}',
  '/runs',
  '/runs/{run}',
  '/runs/{run}?tab=conversation',
  '/runs/{run}?tab=events',
  '/inbox',
  '/tools',
  '/tools/send_email',
  '/tools?view=review',
  '/agents',
  '/agents/default',
  '/agents/default?tab=revisions',
  '/plugins',
  '/plugins/curators',
  '/mcp-servers',
  '/spaces',
  '/spaces/{space}',
  '/spaces/{space}?tab=events',
  '/state',
  '/state?kind=knowledge',
  '/overview',
  '/settings',
];

describe('every screen', () => {
  let world: World;
  let places: Record<string, string>;

  beforeAll(async () => {
    world = await startWorld();
    const { runId, spaceId } = await startRun(
      world,
      'Use send_email to "ada@example.com" with the subject "Hello" and the body "Words."',
      'waiting_approval',
    );
    places = { run: runId, space: spaceId };
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  /** A browser for each way of looking; what they look at changes. */
  const LOOKS = {
    light: { colorScheme: 'light' },
    dark: { colorScheme: 'dark' },
    phone: { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
  } as const;
  const pages = new Map<keyof typeof LOOKS, Page>();

  /** Opens a screen and waits until everything on it has been loaded. */
  async function visit(screen: string, look: keyof typeof LOOKS): Promise<Page> {
    const path = screen.replace(/\{(\w+)\}/g, (_, name: string) => places[name] as string);
    const known = pages.get(look);
    const page = known ?? (await world.open(path, LOOKS[look]));
    pages.set(look, page);
    if (known) await page.goto(world.url + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForFunction(
      () => document.querySelector('[role="status"][aria-label="Loading"]') === null,
    );
    return page;
  }

  /** What axe finds, one text for each rule. */
  async function barriers(axe: AxeBuilder): Promise<string[]> {
    const { violations } = await axe.analyze();
    return violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
    );
  }

  describe.each(SCREENS)('%s', (screen) => {
    test('has no barriers that axe finds', async () => {
      const page = await visit(screen, 'light');
      const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
      expect(await barriers(new AxeBuilder({ page }).withTags(rules))).toEqual([]);
    });

    test('has enough contrast in the dark theme, the only thing that differs there', async () => {
      const page = await visit(screen, 'dark');
      expect(await barriers(new AxeBuilder({ page }).withRules('color-contrast'))).toEqual([]);
    });

    test('fits a screen of 360 pixels', async () => {
      const page = await visit(screen, 'phone');
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    });
  });

  test.each([
    ['/runs/nonsense', 'All runs'],
    ['/spaces/space_01m7pvfm9peyfaysr0zcsjjr00', 'All spaces'],
    ['/agents/none', 'All agents'],
    ['/agents/%E0%A4%A', 'All agents'],
    ['/tools/%E0%A4%A', 'All tools'],
    ['/plugins/none', 'All plugins'],
    ['/mcp-servers/%E0%A4%A', 'All servers'],
    ['/nowhere', 'Open the chat'],
  ])('%s leads nowhere, and says where to go from there', async (path, way) => {
    const page = await world.open(path, LOOKS.phone);
    await page.getByRole('link', { name: way }).click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.context().close();
  });
});
