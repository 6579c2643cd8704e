import { fileURLToPath } from 'node:url';
import { type Gateway, type Model, type ModelReply, startGateway, startModel } from '@toolgate/test-support';
import { type Browser, chromium, type Page } from 'playwright-core';
import { createServer, type ViteDevServer } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ToolDataChannelMessage, ToolgateClient } from '../src/index.js';

const PAGE = fileURLToPath(new URL('rtc-page', import.meta.url));
/** How long anything may take on a busy machine; what works is much faster. */
const WAIT = { timeout: 45_000 };
const CHROMIUM = {
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
};

const tool = (name: string, more: Record<string, unknown>) => ({
  name,
  description: `The tool ${name}.`,
  executionType: 'basic',
  parameters: { type: 'object', properties: { topic: { type: 'string' } } },
  ...more,
});
const AGENT = {
  instructions: 'Propose what the pupil names.',
  tools: [
    tool('worksheet', {
      executionType: 'compute',
      execution: { code: 'return { sheet: args.topic };' },
      approval: 'always',
      retry: 'never',
      visibility: 'public',
    }),
    tool('outline', {
      execution: { mode: 'static', output: { outline: 3 } },
      approval: 'first-in-space',
      visibility: 'public',
    }),
    tool('draw', {}),
    tool('sketch', { approval: 'always' }),
  ],
};

/** Calls the tools that the last message names. */
function callsWhatIsNamed({
  messages,
}: {
  messages: Array<{ role: string; content?: unknown }>;
}): ModelReply {
  const last = messages.at(-1);
  if (last?.role === 'tool') return { text: 'Done.' };
  const asked = JSON.stringify(last?.content);
  const names = ['worksheet', 'outline', 'draw', 'sketch'].filter((name) => asked.includes(name));
  return { calls: names.map((name) => ({ name, args: { topic: 'Gravità' } })) };
}

describe('the data channel in a browser', { timeout: 120_000 }, () => {
  let model: Model;
  let gateway: Gateway;
  let client: ToolgateClient;
  let vite: ViteDevServer;
  let browser: Browser;

  beforeAll(async () => {
    model = await startModel(callsWhatIsNamed);
    gateway = await startGateway({ model, config: '[client_tools]\nresult_bytes_max = 1000000\n' });
    client = new ToolgateClient({ url: gateway.url, key: gateway.secretKey });
    const { model: named } = (await client.agents.get('default')).config as { model?: unknown };
    await client.agents.put('tutor', { ...AGENT, ...(named ? { model: named } : {}) });
    vite = await createServer({
      root: PAGE,
      logLevel: 'error',
      cacheDir: `${PAGE}/node_modules/.vite`,
      server: { port: 0, host: '127.0.0.1', proxy: { '/v1': gateway.url } },
    });
    await vite.listen();
    browser = await chromium.launch(CHROMIUM);
  }, 90_000);

  afterAll(async () => {
    await browser?.close();
    await vite?.close();
    await gateway?.stop();
    await model?.stop();
  });

  async function newSpace(): Promise<string> {
    return (await client.spaces.create({ agent: 'tutor', members: ['pupil'] })).id;
  }

  /** The pupil's page in a space, with an open channel. */
  async function visit(space: string, after?: number): Promise<Page> {
    const page = await browser.newPage();
    await page.goto(vite.resolvedUrls?.local[0] ?? '');
    await page.waitForFunction(() => window.page !== undefined);
    const options = {
      publicKey: gateway.publicKey,
      token: gateway.token('pupil'),
      space,
      ...(after === undefined ? {} : { after }),
    };
    await page.evaluate((given) => window.page.connect(given), options);
    await opened(page, 1);
    return page;
  }

  async function opened(page: Page, times: number): Promise<void> {
    await expect
      .poll(() => page.evaluate(() => [window.page.opened, ...window.page.errors]), WAIT)
      .toEqual([times]);
  }

  const messages = (page: Page): Promise<ToolDataChannelMessage[]> =>
    page.evaluate(() => window.page.messages);

  /** The types of all messages, once the last is `type`. */
  async function typesUntil(page: Page, type: string): Promise<string[]> {
    await expect.poll(async () => (await messages(page)).at(-1)?.type, WAIT).toBe(type);
    return (await messages(page)).map((message) => message.type);
  }

  async function lastOf(page: Page, type: string, count = 1): Promise<ToolDataChannelMessage> {
    const found = async () => (await messages(page)).filter((message) => message.type === type);
    await expect.poll(async () => (await found()).length, WAIT).toBe(count);
    return (await found()).at(-1) as ToolDataChannelMessage;
  }

  const ascending = (all: ToolDataChannelMessage[]): boolean =>
    all.every(({ seq = 0 }, index) => index === 0 || seq > (all[index - 1]?.seq ?? 0));

  test('a proposal is accepted and runs, another is rejected', async () => {
    const space = await newSpace();
    const page = await visit(space);
    await client.spaces.post(space, 'A worksheet, please.');
    const proposal = await lastOf(page, 'TOOL_PROPOSED');
    expect(proposal).toMatchObject({ toolId: 'worksheet', payload: { input: { topic: 'Gravità' } } });
    const accepted = await page.evaluate(
      (message) => window.page.channel.accept(message, { input: { topic: 'Energia' } }),
      proposal,
    );
    expect(accepted).toMatchObject({ approved: true, approvalId: proposal.payload?.approvalId });
    expect(await typesUntil(page, 'TOOL_COMPLETED')).toEqual([
      'TOOL_PROPOSED',
      'TOOL_ACCEPTED',
      'TOOL_EXECUTING',
      'TOOL_COMPLETED',
    ]);
    const completed = (await messages(page)).at(-1);
    expect(completed?.payload?.output).toEqual({ sheet: 'Energia' });
    await client.spaces.post(space, 'Another worksheet.');
    const second = await lastOf(page, 'TOOL_PROPOSED', 2);
    await page.evaluate((message) => window.page.channel.reject(message, { reason: 'basta' }), second);
    const rejected = await lastOf(page, 'TOOL_REJECTED');
    expect(rejected.payload).toMatchObject({ reason: 'basta' });
    expect(ascending(await messages(page))).toBe(true);
    await page.close();
  });

  test('a yes over the channel is remembered until it is revoked, or is for one call', async () => {
    const space = await newSpace();
    const page = await visit(space);
    const asked = ['TOOL_PROPOSED', 'TOOL_ACCEPTED', 'TOOL_EXECUTING', 'TOOL_COMPLETED'];
    const expected: string[] = [];
    const ask = async (proposals: number): Promise<ToolDataChannelMessage> => {
      await client.spaces.post(space, 'An outline, please.');
      return lastOf(page, 'TOOL_PROPOSED', proposals);
    };
    const completed = async (steps: string[]): Promise<void> => {
      expected.push(...steps);
      await expect
        .poll(async () => (await messages(page)).map((message) => message.type), WAIT)
        .toEqual(expected);
    };
    const first = await ask(1);
    const decided = await page.evaluate((message) => window.page.channel.accept(message), first);
    expect(decided).toMatchObject({ approved: true, remembered: true });
    await completed(asked);
    const [consent] = await client.consents.list(space);
    expect(consent).toMatchObject({ toolName: 'outline', approvalId: first.payload?.approvalId });
    // Nobody is asked any more, also not after the page has come back.
    await page.evaluate(() => window.page.cut());
    await opened(page, 2);
    await client.spaces.post(space, 'An outline, please.');
    await completed(['TOOL_EXECUTING', 'TOOL_COMPLETED']);
    await client.consents.revoke(space, String(consent?.id));
    const second = await ask(2);
    const once = await page.evaluate(
      (message) => window.page.channel.accept(message, { remember: false }),
      second,
    );
    expect(once).toMatchObject({ approved: true, remembered: false });
    await completed(asked);
    const third = await ask(3);
    await page.evaluate((message) => window.page.channel.accept(message, { remember: true }), third);
    await completed(asked);
    await client.spaces.post(space, 'An outline, please.');
    await completed(['TOOL_EXECUTING', 'TOOL_COMPLETED']);
    expect(ascending(await messages(page))).toBe(true);
    await page.close();
  });

  test('a cut in the middle loses nothing and repeats nothing, and unanswered messages are sent again', async () => {
    const space = await newSpace();
    const page = await visit(space);
    await client.spaces.post(space, 'A worksheet, please.');
    const proposal = await lastOf(page, 'TOOL_PROPOSED');
    // Sent while the connection goes away: the decision is made once, on whichever connection it arrives.
    const decided = await page.evaluate((message) => {
      window.page.cut();
      return window.page.channel.accept(message);
    }, proposal);
    expect(decided).toMatchObject({ approved: true });
    await opened(page, 2);
    await typesUntil(page, 'TOOL_COMPLETED');
    const all = await messages(page);
    expect(all.map((message) => message.type)).toEqual([
      'TOOL_PROPOSED',
      'TOOL_ACCEPTED',
      'TOOL_EXECUTING',
      'TOOL_COMPLETED',
    ]);
    const cursor = all[0]?.seq;
    const again = await visit(space, cursor);
    await typesUntil(again, 'TOOL_COMPLETED');
    expect(await messages(again)).toEqual(all.slice(1));
    await Promise.all([page.close(), again.close()]);
  });

  test('a client tool is executed over the channel, over a kill of the gateway', async () => {
    const space = await newSpace();
    const page = await visit(space);
    await client.spaces.post(space, 'Please draw.');
    const offer = await lastOf(page, 'TOOL_PROPOSED');
    expect(offer).toMatchObject({ toolId: 'draw', payload: { placement: 'client' } });
    const claimed = await page.evaluate(
      (message) => window.page.channel.claim(message, { holder: 'pupil-tab' }),
      offer,
    );
    expect(claimed).toMatchObject({ toolName: 'draw', input: { topic: 'Gravità' } });
    await page.evaluate((message) => window.page.channel.progress(message, { done: 0.5 }), offer);
    await expect
      .poll(async () => (await messages(page)).at(-1)?.payload?.progress, WAIT)
      .toEqual({ done: 0.5 });
    await gateway.kill();
    // The result waits for the gateway to come back.
    const stored = page.evaluate(
      (message) => window.page.channel.submitResult(message, { result: { drawn: true } }),
      offer,
    );
    await gateway.restart();
    expect(await stored).toMatchObject({ toolCallId: offer.payload?.toolCallId });
    const completed = await lastOf(page, 'TOOL_COMPLETED');
    expect(completed.payload?.output).toEqual({ drawn: true });
    const all = await messages(page);
    expect(ascending(all)).toBe(true);
    expect(all.filter((message) => message.payload?.progress === undefined).map(({ type }) => type)).toEqual([
      'TOOL_PROPOSED',
      'TOOL_EXECUTING',
      'TOOL_COMPLETED',
    ]);
    await page.close();
  });

  test('a client tool that was accepted is offered by its acceptance, and runs with the input that was', async () => {
    const space = await newSpace();
    const page = await visit(space);
    await client.spaces.post(space, 'A sketch, please.');
    const proposal = await lastOf(page, 'TOOL_PROPOSED');
    await page.evaluate(
      (message) => window.page.channel.accept(message, { input: { topic: 'Luce' } }),
      proposal,
    );
    const offer = await lastOf(page, 'TOOL_ACCEPTED');
    expect(offer.payload).toMatchObject({ placement: 'client', deadline: expect.any(String) });
    const claimed = await page.evaluate(
      (message) => window.page.channel.claim(message, { holder: 'pupil-tab' }),
      offer,
    );
    expect(claimed).toMatchObject({ toolName: 'sketch', input: { topic: 'Luce' } });
    await page.evaluate(
      (message) => window.page.channel.submitResult(message, { result: { sketched: true } }),
      offer,
    );
    expect(await typesUntil(page, 'TOOL_COMPLETED')).toEqual([
      'TOOL_PROPOSED',
      'TOOL_ACCEPTED',
      'TOOL_EXECUTING',
      'TOOL_COMPLETED',
    ]);
    await page.close();
  });

  test('a large result goes over HTTP, and what nobody may do is an error', async () => {
    const space = await newSpace();
    const page = await visit(space);
    await client.spaces.post(space, 'Please draw.');
    const offer = await lastOf(page, 'TOOL_PROPOSED');
    const code = await page.evaluate(
      () => window.page.channel.accept('appr_00000000000000000000000001_0').catch((error) => error.code),
      undefined,
    );
    expect(code).toBe('NOT_FOUND');
    await page.evaluate(
      (message) => window.page.channel.submitResult(message, { result: { large: 'x'.repeat(100_000) } }),
      offer,
    );
    const completed = await lastOf(page, 'TOOL_COMPLETED');
    expect(completed.payload?.omitted).toEqual(['output']);
    await page.close();
  });

  test('large results that were made while the channel was cut go over HTTP, each once', async () => {
    const space = await newSpace();
    const page = await visit(space);
    // 300 kB is more than Chromium sends in one message, 100 kB more than the gateway reads.
    for (const [index, size] of [100_000, 300_000].entries()) {
      await client.spaces.post(space, 'Please draw.');
      const offer = await lastOf(page, 'TOOL_PROPOSED', index + 1);
      let offers = 0;
      let refuses = true;
      await page.route('**/rtc', (route) => {
        offers += 1;
        const problem = { status: 503, code: 'UNAVAILABLE', title: 'Unavailable', detail: 'not now' };
        return refuses ? route.fulfill({ status: 503, json: problem }) : route.continue();
      });
      await page.evaluate(() => window.page.cut());
      await expect.poll(() => offers, WAIT).toBeGreaterThan(0);
      const stored = page.evaluate(
        ([message, large]) => window.page.channel.submitResult(message, { result: { large } }),
        [offer, 'x'.repeat(size)] as const,
      );
      refuses = false;
      expect(await stored).toMatchObject({ toolCallId: offer.payload?.toolCallId });
      await opened(page, index + 2);
      expect((await lastOf(page, 'TOOL_COMPLETED', index + 1)).payload?.omitted).toEqual(['output']);
      await page.unroute('**/rtc');
    }
    await page.close();
  });

  test('a pupil who is taken out of the space is told, and does not come back', async () => {
    const space = await newSpace();
    const page = await visit(space);
    await client.spaces.removeMember(space, 'pupil');
    await expect.poll(() => page.evaluate(() => window.page.channel.closed), WAIT).toBe(true);
    expect(await page.evaluate(() => window.page.errors)).toHaveLength(1);
    await page.close();
  });
});
