import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { changeable } from '../src/screens/state/record-owner.ts';
import { startRun, startWorld, type World } from './world.ts';

describe('the screens of an operator', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  test('the overview shows what waits, live, and the charts', async () => {
    const page = await world.open('/overview');
    await page.getByText('Nothing runs').waitFor();
    await page.getByRole('figure').filter({ hasText: 'Runs per hour' }).waitFor();
    const { runId } = await startRun(
      world,
      'Use send_email to "ada@example.com" with the subject "Hello" and the body "Words."',
      'waiting_approval',
    );
    await page.getByRole('link', { name: /Use send_email/ }).waitFor();
    await page.getByRole('link', { name: /Wait for a person 1/ }).waitFor();
    await page.getByText('Sandbox workers').waitFor();
    await page.getByRole('link', { name: /Use send_email/ }).click();
    await page.waitForURL(`**/runs/${runId}`);
    await page.context().close();
  });

  test('a key is created, shown once and revoked', async () => {
    const page = await world.open('/settings');
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Name').fill('billing');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const secret = (await page.getByRole('dialog').getByText(/^sk_/).textContent()) as string;
    const answer = await fetch(`${world.gateway.url}/v1/keys`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    expect(answer.status).toBe(200);
    // What is shown once is not lost by a key or a click beside it.
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.mouse.click(5, 5);
    expect(await page.getByText(secret).isVisible()).toBe(true);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText(secret).waitFor({ state: 'detached' });
    const row = page.getByRole('row').filter({ hasText: 'billing' });
    await row.getByRole('button', { name: 'Revoke…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
    expect((await world.client.keys.list()).some(({ name }) => name === 'billing')).toBe(false);
    await page.context().close();
  });

  test('a space has members, files with preview and download, and events', async () => {
    const { spaceId } = await startRun(world, 'hello', 'completed');
    await world.client.files.write(spaceId, 'notes/today.md', '# Kiln\n\n<script>alert(1)</script>');
    const page = await world.open(`/spaces/${spaceId}`);
    await page.getByRole('button', { name: 'Add a member' }).click();
    await page.getByLabel('Who').fill('ada');
    await page.getByLabel('Role').fill('manager');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('ada is a member').waitFor();
    expect((await world.client.spaces.get(spaceId)).members).toHaveLength(1);
    const row = page.getByRole('row').filter({ hasText: 'ada' });
    await row.getByText('manager').waitFor();
    // What the member has is in the form, because what is saved takes its place.
    await row.getByRole('button', { name: 'Set role…' }).click();
    await page.getByLabel('Permissions').fill('refund, ship');
    await page.getByRole('button', { name: 'Save' }).click();
    await row.getByText('ship').waitFor();
    expect(await world.client.spaces.member(spaceId, 'ada')).toMatchObject({
      role: 'manager',
      grants: ['refund', 'ship'],
    });
    await page.getByRole('tab', { name: 'Files' }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download notes/today.md' }).click();
    expect((await download).suggestedFilename()).toBe('today.md');
    await page.getByRole('button', { name: 'notes/today.md', exact: true }).click();
    await page.getByRole('dialog').getByRole('heading', { name: 'Kiln' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.getByText('run-finish', { exact: true }).first().waitFor();
    await page.context().close();
  });

  test('documents are added, found and deleted', async () => {
    const page = await world.open('/state?kind=knowledge');
    await page.getByRole('button', { name: 'Add a document' }).click();
    await page.getByLabel('Id').fill('kilns');
    await page.getByLabel('Text').fill('# Kilns\n\nCobalt glaze needs 1280 degrees.');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Search as agents do').fill('cobalt');
    await page.getByText(/1280 degrees/).waitFor();
    await page.getByLabel('Search as agents do').fill('');
    await page.getByRole('button', { name: 'Delete Kilns' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No documents').waitFor();
    await page.context().close();
  });

  test('a goal of an agent is changed and deleted', async () => {
    await world.client.agents.put('planner', { instructions: 'You plan.', tools: ['setGoals'] });
    await world.client.tools.call('setGoals', {
      arguments: { goals: [{ description: 'Learn pottery' }] },
      agent: 'planner',
    });
    const goals = async () => (await world.client.goals.list({ agent: 'planner' })).records;
    expect(await goals()).toHaveLength(1);
    const page = await world.open('/state?kind=goals&of=planner');
    await page.getByText('Learn pottery').first().click();
    await page.getByRole('button', { name: 'Edit' }).click();
    const editor = page.getByRole('textbox', { name: /^Members of/ });
    const [goal] = await goals();
    const text = JSON.stringify({
      ...changeable(goal as NonNullable<typeof goal>),
      description: 'Learn glazing',
    });
    await editor.press('Control+a');
    await page.keyboard.press('Delete');
    await page.keyboard.insertText(text);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await page.getByText('Learn glazing').first().waitFor();
    expect(await goals()).toMatchObject([{ description: 'Learn glazing' }]);
    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No goals').waitFor();
    await page.context().close();
  });
});
