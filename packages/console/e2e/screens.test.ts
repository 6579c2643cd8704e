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

  /** Opens a screen and waits until everything on it has been loaded. */
  async function visit(screen: string, options: Parameters<World['open']>[1]): Promise<Page> {
    const page = await world.open(
      screen.replace(/\{(\w+)\}/g, (_, name: string) => places[name] as string),
      options,
    );
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForFunction(
      () => document.querySelector('[role="status"][aria-label="Loading"]') === null,
    );
    return page;
  }

  describe.each(SCREENS)('%s', (screen) => {
    test.each(['light', 'dark'] as const)(
      'has no barriers that axe finds, in the %s theme',
      async (colorScheme) => {
        const page = await visit(screen, { colorScheme });
        const { violations } = await new AxeBuilder({ page })
          .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
          .analyze();
        expect(
          violations.map(
            ({ id, nodes }) =>
              `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
          ),
        ).toEqual([]);
        await page.context().close();
      },
    );

    test('fits a screen of 360 pixels', async () => {
      const page = await visit(screen, {
        viewport: { width: 360, height: 740 },
        hasTouch: true,
        isMobile: true,
      });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
      await page.context().close();
    });
  });
});
