import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRun, startWorld, type World } from './world.ts';

const EMAIL = 'Use send_email to "ada@example.com" with the subject "Hello" and the body "Secret words."';

describe('a session', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld({ signIn: true });
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  /** A fresh code, as `toolgate login` makes it. */
  async function loginCode(): Promise<string> {
    const response = await fetch(`${world.gateway.url}/v1/login-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.gateway.secretKey}`, 'content-type': 'application/json' },
      body: '{}',
    });
    return ((await response.json()) as { code: string }).code;
  }

  async function signedIn(): Promise<Page> {
    const page = await world.open(`/login#code=${await loginCode()}`);
    await page.getByRole('heading', { name: 'Chat' }).waitFor();
    return page;
  }

  test('begins with a login link that counts once and leaves the address', async () => {
    const code = await loginCode();
    const page = await world.open(`/login#code=${code}`);
    await page.getByRole('heading', { name: 'Chat' }).waitFor();
    expect(page.url()).not.toContain(code);
    const second = await world.open(`/login#code=${code}`);
    await second.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Chat' }).waitFor();
  });

  test('begins with a link that is opened where the sign-in page is', async () => {
    const page = await world.open('/login');
    await page.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
    // Only the fragment changes: the browser loads no page.
    await page.goto(`${world.url}/login#code=${await loginCode()}`);
    await page.getByRole('heading', { name: 'Chat' }).waitFor();
    expect(page.url()).not.toContain('code=');
  });

  test.each([
    ['never was one', 'nonsense'],
    ['is no part of an address', '%E0%A4%A'],
    ['is too long', 'x'.repeat(5_000)],
  ])('is not begun by a code that %s, and the page says so', async (_, code) => {
    const page = await world.open(`/login#code=${code}`);
    await page.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
    await page.locator('[aria-invalid="true"]').waitFor();
    expect(page.url()).not.toContain(code);
    await page.context().close();
  });

  test('that replaces another in the same browser takes over its tabs', async () => {
    const old = await signedIn();
    const next = await old.context().newPage();
    await next.goto(`${world.url}/login#code=${await loginCode()}`);
    await next.getByRole('heading', { name: 'Chat' }).waitFor();
    await old.getByRole('link', { name: 'Settings' }).click();
    await old.getByRole('button', { name: 'Create a key' }).waitFor();
    await old.getByRole('tab', { name: 'Sessions' }).click();
    await old.getByText('this one').waitFor();
    await old.context().close();
  });

  test('is needed to see anything', async () => {
    const { runId } = await startRun(world, EMAIL, 'waiting_approval');
    const page = await world.open(`/runs/${runId}`);
    await page.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
    expect(await page.locator('body').textContent()).not.toContain('Secret words');
    await page.getByLabel('Login link or code').fill('nonsense');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('[aria-invalid="true"]').waitFor();
    await page.getByLabel('Login link or code').fill(`${world.url}/login#code=${await loginCode()}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    // What was wanted before is shown now.
    await page.getByText('“Secret words.”').waitFor();
  });

  test('can change things, outlives the gateway, and ends when its owner signs out', async () => {
    const { runId } = await startRun(world, EMAIL, 'waiting_approval');
    const page = await signedIn();
    await world.gateway.restart();
    await page.goto(`${world.url}/runs/${runId}`);
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await page.getByLabel('Detail').getByText('Completed').first().waitFor();
    await page.getByRole('button', { name: 'Account and theme' }).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await page.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
    await page.goto(`${world.url}/runs`);
    await page.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
  });

  test('ends in every browser when somebody signs out everywhere', async () => {
    const [one, other] = [await signedIn(), await signedIn()];
    await one.getByRole('button', { name: 'Account and theme' }).click();
    await one.getByRole('menuitem', { name: 'Sign out everywhere' }).click();
    await one.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
    await other.getByRole('link', { name: 'Tools' }).click();
    await other.getByRole('heading', { name: 'Sign in to Toolgate' }).waitFor();
  });

  test('shows for whom a call is, and what was done with it', async () => {
    const answer = await fetch(`${world.gateway.url}/v1/runs`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-public-key': world.gateway.publicKey,
        authorization: `Bearer ${world.gateway.token('ada')}`,
      },
      body: JSON.stringify({
        message: 'Use send_email to "bob@example.com" with the subject "Hi" and the body "From Ada."',
      }),
    });
    const { runId } = (await answer.json()) as { runId: string };
    const page = await signedIn();
    await page.goto(`${world.url}/inbox`);
    await page
      .getByRole('article')
      .filter({ hasText: 'From Ada.' })
      .getByText('ada', { exact: true })
      .waitFor();
    await page.goto(`${world.url}/runs/${runId}`);
    await page
      .locator('dt', { hasText: 'For' })
      .locator('xpath=following-sibling::dd')
      .getByText('ada')
      .waitFor();
    await page
      .getByText(/^until /)
      .first()
      .waitFor();
    await page.getByRole('button', { name: /Reject/ }).click();
    await page.getByLabel('Reason').fill('not to Bob');
    await page.keyboard.press('Enter');
    await page
      .getByRole('button', { name: /^send_email/ })
      .last()
      .click();
    await page.getByLabel('What happened to the call').getByText('Rejected').waitFor();
    await page.getByLabel('What happened to the call').getByText('not to Bob').waitFor();
  });
});
