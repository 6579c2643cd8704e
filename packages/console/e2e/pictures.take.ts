import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { runHas, startRun, startWorld, type World } from './world.ts';

/** Takes the pictures of the documentation anew. They differ by the minute, so no test compares them and no suite has this. */
describe('the pictures of the documentation', () => {
  const WIDE = { viewport: { width: 1280, height: 760 } };
  const EMAIL =
    'Use send_email to "ada@example.com" with the subject "Your teapot" and the body "It is on its way."';
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
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
    await startRun(world, 'Use lookup_order for my order "A-1042".', 'completed');
  });

  afterAll(() => world?.stop());

  async function take(page: Page, name: string): Promise<void> {
    // The pointer and the caret would be somewhere else each time.
    await page.mouse.move(0, 0);
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    const path = fileURLToPath(new URL(`../../../docs/images/${name}.png`, import.meta.url));
    await page.screenshot({ path, caret: 'hide' });
  }

  test('a chat, wide and on a phone', async () => {
    const page = await world.open('/chat?agent=default', { viewport: { width: 1280, height: 960 } });
    const say = async (text: string): Promise<void> => {
      await page.getByRole('textbox', { name: 'Message' }).fill(text);
      await page.keyboard.press('Enter');
    };
    await say('Use lookup_order for my order "A-1042".');
    await page.locator('[data-tool="lookup_order"]').getByText('Done').waitFor();
    await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' });
    await say(EMAIL);
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await take(page, 'console-chat');
    const phone = await world.open(new URL(page.url()).pathname, {
      viewport: { width: 360, height: 740 },
      deviceScaleFactor: 2,
      colorScheme: 'dark',
      hasTouch: true,
      isMobile: true,
    });
    await phone.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await take(phone, 'console-phone');
  });

  test('a run with a child run', async () => {
    const { runId } = await world.client.runs.start({
      agent: 'desk',
      message: 'Use ask_researcher "Use find_price please"',
    });
    await runHas(world.client, runId as string, 'completed');
    const page = await world.open(`/runs/${runId}`, WIDE);
    await page.getByRole('button', { name: /Child run/ }).click();
    await page.getByText('find_price', { exact: true }).waitFor();
    await take(page, 'console-run');
  });

  test('a tool that was called with its form', async () => {
    const page = await world.open('/tools/lookup_order', { ...WIDE, colorScheme: 'dark' });
    await page.getByLabel('orderNumber').fill('A-1042');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByLabel('Output').getByText('“Blue teapot”').waitFor();
    await take(page, 'console-tool');
  });
});
