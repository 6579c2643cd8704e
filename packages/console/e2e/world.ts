import { readFile } from 'node:fs/promises';
import { ToolgateClient } from '@toolgate/client';
import { type Gateway, type GatewayOptions, startGateway } from '@toolgate/test-support';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { vi } from 'vitest';
import { type DistServer, serveDist } from './serve-dist.ts';

/** How long anything may take on a busy machine; what works is much faster. */
export const WAIT_MS_MAX = 30_000;

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

/** A gateway with its console, a browser, and a client of the gateway. */
export interface World {
  readonly gateway: Gateway;
  readonly client: ToolgateClient;
  readonly url: string;
  /** Opens a page of the console. It notes script errors and violations of the content security policy. */
  open(path: string, options?: BrowserContextOptions): Promise<Page>;
  /** Errors of all pages that were opened. */
  readonly mistakes: string[];
  stop(): Promise<void>;
}

export interface WorldOptions extends GatewayOptions {
  /** Whether the console asks for a login link; otherwise the gateway runs without authentication. */
  readonly signIn?: boolean;
}

/** Starts the real gateway, and the console that was built. */
export async function startWorld({ signIn = false, ...options }: WorldOptions = {}): Promise<World> {
  const gateway = await startGateway({
    ...options,
    env: { ...(!signIn && { TOOLGATE_NO_AUTH: 'true' }), ...options.env },
  });
  const console = await consoleOf(gateway);
  const browser: Browser = await chromium.launch(CHROMIUM);
  const mistakes: string[] = [];
  return {
    gateway,
    client: new ToolgateClient({ url: gateway.url, key: gateway.secretKey }),
    url: console.url,
    mistakes,
    open: async (path, contextOptions = {}) => {
      const context = await browser.newContext({ reducedMotion: 'reduce', ...contextOptions });
      const page = await context.newPage();
      page.setDefaultTimeout(WAIT_MS_MAX);
      page.on('pageerror', (error) => mistakes.push(`script error: ${error.message}`));
      page.on('console', (message) => {
        if (/content security policy|refused to/i.test(message.text())) mistakes.push(message.text());
      });
      page.on('dialog', (dialog) => {
        mistakes.push(`a dialog was opened: ${dialog.message()}`);
        void dialog.dismiss();
      });
      await page.goto(console.url + path);
      return page;
    },
    stop: async () => {
      await browser.close();
      await console.stop();
      await gateway.stop();
    },
  };
}

/** Starts a run of the default agent, and waits until it has this status. */
export async function startRun(
  { client }: World,
  message: string,
  status: string,
): Promise<{ runId: string; spaceId: string }> {
  const { runId, spaceId } = await client.runs.start(message);
  if (!runId) throw new Error('the message has started no run');
  await runHas(client, runId, status);
  return { runId, spaceId };
}

/** Waits until a run has this status. */
export async function runHas(client: ToolgateClient, runId: string, status: string): Promise<void> {
  await vi.waitUntil(async () => (await client.runs.get(runId)).status === status, {
    timeout: WAIT_MS_MAX,
    interval: 50,
  });
}

/** The gateway's own console if it serves the files that were built last; otherwise those in front of it. */
async function consoleOf(gateway: Gateway): Promise<DistServer> {
  const built = await readFile(new URL('../dist/index.html', import.meta.url), 'utf8');
  const served = await fetch(gateway.url, { headers: { accept: 'text/html' } }).then((answer) =>
    answer.text(),
  );
  return served === built ? { url: gateway.url, stop: async () => {} } : serveDist(gateway.url);
}
