import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runHas, startRun, startWorld, type World } from './world.ts';

const EMAIL = 'Use send_email to "ada@example.com" with the subject "Hello" and the body "Words."';

const GLAZE = {
  name: 'find_glaze',
  description: 'Finds a glaze.',
  parameters: { type: 'object', properties: {} },
  executionType: 'basic',
  execution: { mode: 'static', output: { glaze: 'celadon' } },
};

describe('the runs screen', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  async function start(message: string, status: string): Promise<string> {
    return (await startRun(world, message, status)).runId;
  }

  test('lists runs, and keeps the filter in the address', async () => {
    const done = await start('Use lookup_order for my order "A-1042".', 'completed');
    const waiting = await start(EMAIL, 'waiting_approval');
    const page = await world.open('/runs');
    await page.locator(`a[href^="/runs/${done}"]`).waitFor();
    await page.getByLabel('Status').selectOption('completed');
    await page.locator(`a[href^="/runs/${waiting}"]`).waitFor({ state: 'detached' });
    await page.locator(`a[href^="/runs/${done}"]`).waitFor();
    expect(new URL(page.url()).search).toBe('?status=completed');
    await world.client.runs.cancel(waiting);
  });

  test('shows steps, calls and events of a run', async () => {
    const run = await start('Use lookup_order for my order "A-1042".', 'completed');
    const page = await world.open(`/runs/${run}`);
    await page.getByText('Step 2').waitFor();
    await page.getByRole('button', { name: /lookup_order/ }).click();
    await page.getByText('“Blue teapot”').waitFor();
    expect(new URL(page.url()).searchParams.get('call')).toMatch(/^call_/);
    await page.getByRole('tab', { name: /Events/ }).click();
    await page.getByLabel('Search events').fill('Blue teapot');
    await page.getByRole('button', { name: /tool-output-available/ }).click();
    await page.getByLabel('Event', { exact: true }).getByText('“Blue teapot”').waitFor();
  });

  test('answers, cancels and repeats a run', async () => {
    const page = await world.open(`/runs/${await start(EMAIL, 'waiting_approval')}`);
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await page.getByLabel('Detail').getByText('Completed').first().waitFor();
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByLabel('Detail').getByText('Cancelled').first().waitFor();
  });

  test('runs again from a message, after what was said before it', async () => {
    const first = await startRun(world, 'Tell me of oolong.', 'completed');
    const second = await world.client.spaces.post(first.spaceId, 'Use lookup_order for my order "A-1042".');
    await runHas(world.client, second.runId as string, 'completed');
    const page = await world.open(`/runs/${second.runId}?tab=conversation`);
    await page.getByRole('button', { name: 'Run again from here' }).click();
    await page.waitForURL((url) => !url.pathname.includes(second.runId as string));
    const again = new URL(page.url()).pathname.split('/').at(-1) as string;
    await runHas(world.client, again, 'completed');
    const { spaceId } = await world.client.runs.get(again);
    expect(spaceId).not.toBe(first.spaceId);
    const { events } = await world.client.spaces.events(spaceId, {});
    expect(JSON.stringify(events.find(({ type }) => type === 'history'))).toContain('Tell me of oolong.');
  });

  test('repeats a call of a tool with the agent that has it', async () => {
    await world.client.agents.put('potter', { instructions: 'x', tools: [GLAZE] });
    const call = await world.client.tools.call('find_glaze', { agent: 'potter', arguments: {} });
    const page = await world.open(`/runs/${call.runId}`);
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.waitForURL((url) => !url.pathname.includes(call.runId));
    await page.getByLabel('Detail').getByText('Completed').first().waitFor();
  });

  test('answers an open client call by hand', async () => {
    const run = await start('Use ask_user "Which glaze?"', 'waiting_tool');
    const page = await world.open(`/runs/${run}`);
    await page.getByLabel('Which glaze?').fill('Cobalt');
    await page.keyboard.press('Enter');
    await page.getByLabel('Detail').getByText('Completed').first().waitFor();
    expect((await world.client.runs.get(run)).text).toContain('Cobalt');
  });

  test('shows a run as its user sees it', async () => {
    const page = await world.open(
      `/runs/${await start('Use lookup_order for my order "A-1042".', 'completed')}`,
    );
    await page.getByRole('button', { name: /lookup_order/ }).click();
    await page.getByText('“Blue teapot”').waitFor();
    await page.getByRole('button', { name: 'As a user sees it' }).click();
    await page.getByText('“Blue teapot”').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /lookup_order/ }).waitFor();
    expect(new URL(page.url()).searchParams.get('view')).toBe('public');
  });

  test('finds runs by their first words', async () => {
    const [tea, other] = [
      await start('Tell me of oolong.', 'completed'),
      await start('Of coffee.', 'completed'),
    ];
    const page = await world.open('/runs');
    await page.getByLabel('Search first messages').fill('OOLONG');
    await page.locator(`a[href^="/runs/${other}"]`).waitFor({ state: 'detached' });
    await page.locator(`a[href^="/runs/${tea}"]`).getByText('Tell me of oolong.').waitFor();
  });

  test('follows a run that begins while the list is open', async () => {
    const page = await world.open('/runs?status=waiting_approval');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    await page.getByText('No run fits the filter').waitFor();
    const run = await start(EMAIL, 'waiting_approval');
    await page.locator(`a[href^="/runs/${run}"]`).click();
    await page.getByRole('heading', { name: /Use send_email/ }).waitFor();
    await page.goBack();
    expect(new URL(page.url()).search).toBe('?status=waiting_approval');
  });
});
