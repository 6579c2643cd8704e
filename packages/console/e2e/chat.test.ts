import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRun, startWorld, type World } from './world.ts';

describe('the chat', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  async function say(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
    await page.keyboard.press('Enter');
  }

  function card(page: Page, tool: string) {
    return page.locator(`[data-tool="${tool}"]`).last();
  }

  test('brings a real tool call on the screen with the first click', async () => {
    const page = await world.open('/');
    await page.getByRole('button', { name: /lookup_order/ }).click();
    await card(page, 'lookup_order').getByText('Done').waitFor();
    await card(page, 'lookup_order')
      .getByRole('button', { name: /lookup_order/ })
      .click();
    await card(page, 'lookup_order').getByText('“Blue teapot”').waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/chat\/space_/);
  });

  test('executes a tool of the page, with progress', async () => {
    const page = await world.open('/chat?agent=default');
    await say(page, 'Use count_slowly to 3.');
    await card(page, 'count_slowly').getByText(/of 3/).waitFor();
    await card(page, 'count_slowly').getByText('Done').waitFor();
  });

  test('asks its reader when the tool is one that a person answers', async () => {
    const page = await world.open('/chat?agent=default');
    await say(page, 'Use ask_user "Which glaze?"');
    await page.getByLabel('Which glaze?').fill('Celadon');
    await page.keyboard.press('Enter');
    await card(page, 'ask_user').getByText('Done').waitFor();
  });

  test('runs an approved call with the input that a person has edited', async () => {
    const page = await world.open('/chat?agent=default');
    await say(
      page,
      'Use send_email to "ada@example.com" with the subject "Hello" and the body "First words."',
    );
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('body').fill('Better words.');
    await page.getByRole('button', { name: 'Approve with changes' }).click();
    await card(page, 'send_email').getByText('Done').waitFor();
    await card(page, 'send_email')
      .getByRole('button', { name: /send_email/ })
      .click();
    await card(page, 'send_email').getByLabel('Output').getByText('“Better words.”').waitFor();
  });

  test('tells the model why a call was rejected', async () => {
    const page = await world.open('/chat?agent=default');
    await say(page, 'Use send_email to "ada@example.com" with the subject "Hello" and the body "Words."');
    await page.getByRole('button', { name: 'Reject…' }).click();
    await page.getByLabel('Reason').fill('not today');
    await page.keyboard.press('Enter');
    await card(page, 'send_email').getByText('Rejected').waitFor();
    await page
      .getByText(/not today/)
      .last()
      .waitFor();
  });

  test('goes on over a kill of the gateway, and loses nothing on the screen', async () => {
    const page = await world.open('/chat?agent=default');
    await say(
      page,
      'Use send_email to "ada@example.com" with the subject "Hello" and the body "Kept words."',
    );
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    // The page suggests it.
    await page.getByText('kill -9 "$(cat toolgate-data/pid)"').waitFor();
    await world.gateway.kill();
    await page.getByText('The gateway cannot be reached').waitFor();
    await page.getByText('“Kept words.”').waitFor();
    await world.gateway.restart();
    await page.getByText('The gateway cannot be reached').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await card(page, 'send_email').getByText('Done').waitFor();
    await page.reload();
    await card(page, 'send_email').getByText('Done').waitFor();
  });

  test('talks to the agent that was picked, and folds a child run into its call', async () => {
    const find = {
      name: 'find_price',
      description: 'Finds a price.',
      parameters: { type: 'object', properties: {} },
      executionType: 'basic',
      execution: { mode: 'static', output: { price: 34.5 } },
    };
    const ask = {
      name: 'ask_researcher',
      description: 'Asks the researcher.',
      parameters: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
      executionType: 'ai-agent',
      execution: { agent: 'researcher' },
    };
    await world.client.agents.put('researcher', { instructions: 'Look up.', tools: [find] });
    await world.client.agents.put('desk', { instructions: 'Help.', tools: [ask] });
    const page = await world.open('/chat?agent=default');
    await page.getByLabel('Agent', { exact: true }).selectOption('desk');
    await page.getByRole('heading', { name: 'Talk to desk' }).waitFor();
    await say(page, 'Use ask_researcher "Use find_price please"');
    await card(page, 'ask_researcher').getByText('Done').first().waitFor();
    await page.getByRole('button', { name: /ask_researcher/ }).click();
    await page.locator('[data-tool="find_price"]').getByText('Done').waitFor();
  });

  test('stops a run that waits', async () => {
    const page = await world.open('/chat?agent=default');
    await say(page, 'Use send_email to "ada@example.com" with the subject "Hello" and the body "Words."');
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await card(page, 'send_email').getByText('Failed').waitFor();
  });

  test('begins at the top on a phone, and has the recent conversations in a menu', async () => {
    const phone = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true };
    const page = await world.open('/chat?agent=default', phone);
    await page.getByRole('button', { name: /lookup_order/ }).waitFor();
    expect(await page.getByRole('log').evaluate((log) => log.scrollTop)).toBe(0);
    await startRun(world, 'Tell me of pu-erh.', 'completed');
    await page.reload();
    await page.getByRole('button', { name: 'Recent conversations' }).click();
    await page.getByRole('menuitemradio', { name: 'Tell me of pu-erh.' }).click();
    await page.getByRole('log').getByText('Tell me of pu-erh.').first().waitFor();
  });

  test('is reached from anywhere with the command palette', async () => {
    const page = await world.open('/runs');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('talk default');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Talk to default' }).waitFor();
  });
});
