import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from './world.ts';

describe('the agents screen', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  test('shows what the gateway finds at its line, saves, tries, compares and restores', async () => {
    await world.client.agents.put('guide', {
      instructions: 'You guide.',
      model: { provider: 'demo', name: 'demo' },
    });
    const page = await world.open('/agents/guide', { viewport: { width: 1600, height: 900 } });
    const editor = page.getByRole('textbox', { name: 'Configuration of guide' });
    await editor.fill('{\n  "instructions": "You guide.",\n  "limits": {\n    "calls": -2\n  }\n}');
    await page.getByRole('button', { name: 'Save' }).click();
    const problems = page.getByRole('status', { name: 'Problems' });
    await problems.getByText('Line 4').waitFor();
    await problems.getByText(/\/limits\/calls: expected a whole number/).waitFor();

    await editor.fill('{"instructions": "You guide well.", "model": {"provider": "demo", "name": "demo"}}');
    await editor.press('Control+s');
    await page.getByText('Saved as revision 2').waitFor();

    await page.getByLabel('Message to guide').fill('hello');
    await page.getByLabel('Message to guide').press('Enter');
    await page.getByLabel('Try').getByText(/demo/).first().waitFor();
    await page.getByRole('link', { name: 'Show the run' }).waitFor();

    await page.getByRole('tab', { name: 'Revisions' }).click();
    await page.getByText('From revision 1 to the current one').waitFor();
    await page
      .getByRole('textbox', { name: 'Changes since revision 1' })
      .getByText(/You guide well/)
      .waitFor();
    await page.getByRole('button', { name: 'Restore revision 1' }).click();
    await page.getByText('Revision 1 is current again, as revision 3').waitFor();
    expect((await world.client.agents.get('guide')).config).toMatchObject({ instructions: 'You guide.' });
    await page.context().close();
  });

  test('edits an agent as Markdown', async () => {
    await world.client.agents.put('writer', { description: 'Writes.', instructions: 'You write.' });
    const page = await world.open('/agents/writer');
    const editor = page.getByRole('textbox', { name: 'Configuration of writer' });
    await editor.waitFor();
    await page.getByRole('button', { name: 'Markdown' }).click();
    await editor.getByText('description: Writes.').waitFor();
    await editor.fill('---\ndescription: Writes a lot.\n---\n\nYou write *well*.\n');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved as revision 2').waitFor();
    expect((await world.client.agents.get('writer')).config).toEqual({
      description: 'Writes a lot.',
      instructions: 'You write *well*.',
    });
    await page.context().close();
  });

  test('creates an agent and removes it', async () => {
    const page = await world.open('/agents');
    await page.getByRole('button', { name: 'New agent' }).click();
    await page.getByLabel('Name').fill('fresh');
    await page.getByLabel('Instructions').fill('You are fresh.');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'fresh' }).waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Remove…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Agent fresh is removed').waitFor();
    await page.getByRole('link', { name: /fresh/ }).waitFor({ state: 'detached' });
    await page.context().close();
  });
});
