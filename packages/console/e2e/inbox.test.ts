import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runHas, startWorld, type World } from './world.ts';

describe('the inbox', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  test('has what waits for a person, counts it in the rail, and lets one decide', async () => {
    const page = await world.open('/inbox');
    await page.getByText('Nothing waits for you').waitFor();
    const { runId } = await world.client.runs.start(
      'Use send_email to "ada@example.com" with the subject "Hello" and the body "From the inbox."',
    );
    await page.getByText('“From the inbox.”').waitFor();
    await page.getByRole('article').getByText('Use send_email to').waitFor();
    await page.getByRole('link', { name: 'Inbox 1 waiting' }).waitFor();
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await page.getByText('Nothing waits for you').waitFor();
    await runHas(world.client, runId as string, 'completed');
  });
});
