import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from './world.ts';

describe('remembered approvals', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
    await world.client.agents.put('tutor', {
      tools: [
        {
          name: 'sheet',
          description: 'Makes a sheet.',
          executionType: 'basic',
          execution: { mode: 'pass-through' },
          approval: 'first-in-space',
          voicePrompt: 'Creare un foglio su {topic}?',
        },
      ],
    });
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  test('are given in the inbox, listed in their space, and revoked there', async () => {
    const { id: spaceId } = await world.client.spaces.create({ title: 'Lezione', agent: 'tutor' });
    const call = () =>
      world.client.tools.call('sheet', { agent: 'tutor', spaceId, arguments: { topic: 'la luce' } });
    expect((await call()).status).toBe('waiting_approval');
    const page = await world.open('/inbox');
    await page.getByText('Creare un foglio su la luce?').waitFor();
    await page.getByRole('button', { name: 'Approve once' }).click();
    await page.getByText('Nothing waits for you').waitFor();
    expect((await call()).status).toBe('waiting_approval');
    await page.getByRole('button', { name: 'Approve from now on' }).click();
    await page.getByText('Nothing waits for you').waitFor();
    const { runId, status } = await call();
    expect(status).toBe('completed');

    const run = await world.open(`/runs/${runId}?view=timeline`);
    await run.getByText('sheet').first().waitFor();
    const space = await world.open(`/spaces/${spaceId}?tab=consents`);
    const row = space.getByRole('row').filter({ hasText: 'sheet' });
    await row.getByText('a secret key').waitFor();
    await row.getByRole('button', { name: 'Revoke' }).click();
    await space.getByText('No remembered approvals').waitFor();
    expect((await call()).status).toBe('waiting_approval');
  });

  test('look right on a narrow page, light and dark', async () => {
    const { id: spaceId } = await world.client.spaces.create({ title: 'Lezione', agent: 'tutor' });
    const { pending } = await world.client.tools.call('sheet', { agent: 'tutor', spaceId });
    await world.client.approvals.decide(pending?.approvals[0]?.approvalId ?? '', { approved: true });
    for (const [colorScheme, width] of [
      ['light', 1280],
      ['dark', 390],
    ] as const) {
      const page = await world.open(`/spaces/${spaceId}?tab=consents`, {
        colorScheme,
        viewport: { width, height: 800 },
      });
      await page.getByRole('button', { name: 'Revoke' }).waitFor();
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
    }
  });
});
