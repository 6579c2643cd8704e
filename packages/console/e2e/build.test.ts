import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from './world.ts';

const CALCULATOR = fileURLToPath(
  new URL('../../../examples/plugins/calculator/calculator.json', import.meta.url),
);
const CURATOR = new URL('../../../examples/plugins/curator.pub.pem', import.meta.url);
const SERVER = fileURLToPath(new URL('../../client/tests/mcp-test-server.js', import.meta.url));

/**
 * Replaces the text of an editor. `fill` would have the browser replace highlighted text, and keep its look as a style
 * attribute, which the content security policy refuses and reports.
 */
async function write(page: Page, label: string, text: string): Promise<void> {
  await page.getByRole('textbox', { name: label }).press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(text);
}

describe('the screens that bring tools', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld({ env: { TOOLGATE_PLUGINS_MODE: 'development' } });
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  test('a curator is trusted, a package reviewed and installed, and removed', async () => {
    const page = await world.open('/plugins/curators');
    await page.getByRole('button', { name: 'Trust a curator' }).click();
    const { curatorId } = JSON.parse(await readFile(CALCULATOR, 'utf8')) as { curatorId: string };
    await page.getByLabel('Id').fill(curatorId);
    await page.getByLabel('Public key').fill(await readFile(CURATOR, 'utf8'));
    await page.getByRole('button', { name: 'Trust', exact: true }).click();
    await page.getByText(`${curatorId} is trusted`).waitFor();

    await page.getByRole('link', { name: 'Install' }).first().click();
    await page.getByLabel('File').setInputFiles(CALCULATOR);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Installs a new plugin').waitFor();
    await dialog.getByText(`Verified by ${curatorId}`).waitFor();
    await dialog.getByText('it reaches no network').waitFor();
    expect((await world.client.installedPlugins.list()).plugins).toHaveLength(0);
    await dialog.getByRole('button', { name: 'Install' }).click();
    await page.getByRole('heading', { name: 'Calculator' }).waitFor();
    await page.getByRole('link', { name: 'calculate', exact: true }).waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Remove…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Calculator is removed').waitFor();
    await page.context().close();
  });

  test('a plugin is written and tried in development mode', async () => {
    const page = await world.open('/plugins/write');
    await write(page, 'Code of the tool', 'return { twice: args.count * 2 };');
    await write(page, 'Input of the try', '{"count": 21}');
    await page.getByRole('button', { name: 'Install and try' }).click();
    await page.getByLabel('Output').getByText('42').waitFor();
    await page.getByRole('link', { name: /draft/ }).getByText('Unsigned').waitFor();
    await page.context().close();
  });

  test('an MCP server is added, its held tools are reviewed, and it is removed', async () => {
    const page = await world.open('/mcp-servers');
    await page.getByRole('button', { name: 'Add a server' }).click();
    await page.getByLabel('Name').fill('tools');
    await page.getByRole('button', { name: 'A program' }).click();
    await page.getByLabel('Command').fill(process.execPath);
    await page.getByLabel('Arguments').fill(SERVER);
    await page.getByLabel('Review').selectOption('always');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('heading', { name: 'tools', exact: true }).waitFor();
    const held = page.getByRole('article').filter({ hasText: 'Held: new' }).first();
    await held.waitFor();
    const name = await held.getAttribute('aria-label');
    await held.getByRole('button', { name: 'Accept this definition' }).click();
    await page
      .getByRole('article', { name: name as string })
      .getByText('Offered')
      .waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Remove…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('No MCP servers yet').waitFor();
    await page.context().close();
  });
});
