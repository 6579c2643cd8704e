import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startWorld, WAIT_MS_MAX, type World } from './world.ts';

/** A tool whose input has every kind of member that the form knows. */
const ORDER = {
  name: 'place_order',
  description: 'Places an order; gives back what it was given.',
  executionType: 'basic',
  execution: { mode: 'pass-through' },
  parameters: {
    type: 'object',
    properties: {
      email: { type: 'string', format: 'email' },
      quantity: { type: 'integer', minimum: 1, maximum: 5 },
      gift: { type: 'boolean' },
      glaze: { enum: ['cobalt', 'celadon'] },
      address: {
        type: 'object',
        properties: { street: { type: 'string' }, zip: { type: 'string', pattern: '^[0-9]{5}$' } },
        required: ['street', 'zip'],
      },
      notes: { type: 'array', items: { type: 'string' } },
      payment: {
        oneOf: [
          {
            title: 'Card',
            type: 'object',
            properties: { kind: { const: 'card' }, number: { type: 'string' } },
            required: ['kind', 'number'],
          },
          {
            title: 'Invoice',
            type: 'object',
            properties: { kind: { const: 'invoice' }, vat: { type: 'string' } },
            required: ['kind', 'vat'],
          },
        ],
      },
    },
    required: ['email', 'quantity', 'glaze', 'address', 'payment'],
  },
};

describe('the tools screen', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
    await world.client.agents.put('shop', { instructions: 'Sell teapots.', tools: [ORDER] });
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  test('calls a tool with a form made from its schema, and checks as one types', async () => {
    const page = await world.open('/tools/place_order');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('Call again to send it as it is.').waitFor();
    await page.getByLabel('email').fill('ada');
    await page.getByText(/does not match format "email"/).waitFor();
    await page.getByLabel('email').fill('ada@example.com');
    await page.getByText(/does not match format "email"/).waitFor({ state: 'detached' });
    await page.getByLabel('quantity').fill('9');
    await page.getByText(/greater than/).waitFor();
    await page.getByLabel('quantity').fill('2');
    await page.getByLabel('glaze').selectOption('celadon');
    await page.getByLabel('street').fill('Kiln Lane 4');
    await page.getByLabel('zip').fill('12345');
    await page.getByRole('button', { name: 'Add an item' }).click();
    await page.getByLabel('Item', { exact: true }).fill('wrap it');
    await page.getByLabel('payment').selectOption({ label: 'Invoice' });
    await page.getByLabel('vat').fill('DE123');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    const output = page.getByLabel('Output');
    await output.getByText('“Kiln Lane 4”').waitFor();
    await output.getByText('“invoice”').waitFor();
    await output.getByText('“wrap it”').waitFor();
  });

  test('shows what an MCP server tells the model before agents are offered it', async () => {
    await world.client.mcpServers.put('everything', {
      command: process.execPath,
      args: [createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')],
      review: 'always',
    });
    await vi.waitUntil(async () => (await world.client.mcpServers.get('everything')).held > 1, {
      timeout: WAIT_MS_MAX,
      interval: 100,
    });
    const page = await world.open('/tools?view=review');
    const echo = page
      .getByRole('article')
      .filter({ has: page.getByRole('heading', { name: 'mcp_everything_echo' }) });
    await echo.getByRole('button', { name: 'Accept' }).click();
    await echo.waitFor({ state: 'detached' });
    const tools = (await world.client.mcpServers.get('everything')).tools;
    expect(tools.find(({ tool }) => tool === 'echo')?.state).toBe('accepted');
    await page.getByRole('button', { name: 'Reject' }).first().click();
    await page.getByText(/is rejected\./).waitFor();
  });

  test('finds a tool by its words and shows how it does', async () => {
    await world.client.tools.call('lookup_order', { arguments: { orderNumber: 'A-1042' }, agent: 'default' });
    const page = await world.open('/tools');
    await page.getByLabel('Search tools').fill('bought');
    await page.getByRole('link', { name: /place_order/ }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: /lookup_order/ }).click();
    await page.getByRole('heading', { name: 'lookup_order' }).waitFor();
    await page
      .locator('dt', { hasText: 'Calls' })
      .locator('xpath=following-sibling::dd')
      .getByText('1')
      .waitFor();
    expect(page.url()).toContain('/tools/lookup_order?text=bought');
  });
});
