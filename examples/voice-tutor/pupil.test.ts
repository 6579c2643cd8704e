import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
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

/** What replaces the browser's speech, which a headless one does not have: a notebook and a pupil who speaks. */
interface Speech {
  said: string[];
  /** Resolves when the page listens; then it hears these words. */
  hear(words: string): Promise<void>;
}
declare global {
  interface Window {
    speech: Speech;
  }
}

function stubSpeech(): void {
  const said: string[] = [];
  const listening: Array<(words: string) => void> = [];
  const speaking: Array<(words: string) => void> = [];
  const meet = (): void => {
    while (listening.length > 0 && speaking.length > 0) speaking.shift()?.('');
  };
  class Recognition {
    onresult: ((event: unknown) => void) | undefined;
    onend: (() => void) | undefined;
    start(): void {
      listening.push((transcript) => {
        this.onresult?.({ results: [[{ transcript }]] });
        this.onend?.();
      });
      meet();
    }
  }
  const voice = {
    speak: (utterance: SpeechSynthesisUtterance) => {
      said.push(`${utterance.lang}: ${utterance.text}`);
      queueMicrotask(() => utterance.onend?.(new Event('end') as SpeechSynthesisEvent));
    },
  };
  const replace = (name: string, value: unknown): void => {
    Object.defineProperty(window, name, { value, configurable: true });
  };
  replace('speechSynthesis', voice);
  replace('SpeechRecognition', Recognition);
  window.speech = {
    said,
    hear: (words) =>
      new Promise((resolve) => {
        speaking.push(() => {
          listening.shift()?.(words);
          resolve();
        });
        meet();
      }),
  };
}

/** A browser without speech at all. */
function noSpeech(): void {
  for (const name of ['speechSynthesis', 'SpeechRecognition', 'webkitSpeechRecognition'])
    Object.defineProperty(window, name, { value: undefined, configurable: true });
}

describe('the pupil’s page', { timeout: 120_000 }, () => {
  let data: string;
  let started: ChildProcess;
  let address: string;
  let browser: Browser;

  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'toolgate-example-'));
    started = spawn(process.execPath, ['start-page.js'], {
      cwd: FOLDER,
      env: { ...process.env, PORT: '0', TOOLGATE_DATA: data },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    address = await addressOf(started);
    browser = await chromium.launch(CHROMIUM);
  }, 90_000);

  afterAll(async () => {
    await browser?.close();
    if (started?.exitCode === null) {
      started.kill('SIGTERM');
      const [code] = await once(started, 'exit');
      expect(code).toBe(0);
    }
    // The gateway may still be on its way out.
    await rm(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });

  async function visit(speech: () => void): Promise<Page> {
    const page = await browser.newPage();
    page.setDefaultTimeout(WAIT.timeout);
    await page.addInitScript(speech);
    await page.goto(address);
    await page.getByText('Collegato.').waitFor();
    return page;
  }

  async function type(page: Page, words: string): Promise<void> {
    await page.getByLabel('Che cosa dici?').fill(words);
    await page.keyboard.press('Enter');
  }

  const items = (page: Page, list: string): Promise<string[]> =>
    page.locator(`#${list} li`).allTextContents();
  const stepsUntil = async (page: Page, last: string): Promise<string[]> => {
    await expect.poll(async () => (await items(page, 'steps')).at(-1), WAIT).toBe(last);
    return items(page, 'steps');
  };
  const hear = (page: Page, words: string) => page.evaluate((said) => window.speech.hear(said), words);
  const said = (page: Page) => page.evaluate(() => window.speech.said);

  test('a tool is proposed aloud, a spoken yes runs it, every step shows, and the outcome is said', async () => {
    const page = await visit(stubSpeech);
    await page.getByRole('button', { name: 'Parla' }).click();
    await hear(page, 'vorrei un foglio');
    // The page listens once it has asked.
    await expect.poll(() => said(page), WAIT).toEqual(['it-IT: Creare un foglio su la gravità?']);
    await hear(page, 'Sì!');
    expect(await stepsUntil(page, 'my_tool: completato')).toEqual([
      'my_tool: proposto',
      'my_tool: accettato',
      'my_tool: in corso',
      'my_tool: completato',
    ]);
    await expect
      .poll(() => said(page), WAIT)
      .toEqual([
        'it-IT: Creare un foglio su la gravità?',
        'it-IT: Foglio su la gravità creato con 3 elementi',
      ]);
    expect(await items(page, 'talk')).toEqual([
      '🎤 vorrei un foglio',
      '🔊 Creare un foglio su la gravità?',
      '🎤 Sì!',
      '🔊 Foglio su la gravità creato con 3 elementi',
    ]);
    await page.close();
  });

  test('a spoken no rejects it, and nothing runs', async () => {
    const page = await visit(stubSpeech);
    await page.getByLabel('Argomento').fill('la luce');
    await type(page, 'crea un foglio');
    await hear(page, 'no, grazie');
    expect(await stepsUntil(page, 'my_tool: rifiutato')).toEqual(['my_tool: proposto', 'my_tool: rifiutato']);
    await expect
      .poll(() => said(page), WAIT)
      .toEqual(['it-IT: Creare un foglio su la luce?', 'it-IT: Va bene, niente foglio.']);
    await page.close();
  });

  test('without a voice and a microphone everything is typed and shown', async () => {
    const page = await visit(noSpeech);
    expect(await page.getByRole('button', { name: 'Parla' }).isVisible()).toBe(false);
    await type(page, 'crea un foglio');
    await page.getByText('🔊 Creare un foglio su la gravità?').waitFor();
    await type(page, 'sì, ma più tardi');
    await page.getByText('🔊 Dimmi sì o no.').waitFor();
    await type(page, 'si');
    await stepsUntil(page, 'my_tool: completato');
    await page.getByText('🔊 Foglio su la gravità creato con 3 elementi').waitFor();
    // Whoever does not type presses a button, which is there while something is proposed.
    const no = page.getByRole('button', { name: 'No' });
    expect(await no.isVisible()).toBe(false);
    await type(page, 'crea un foglio');
    await no.click();
    await stepsUntil(page, 'my_tool: rifiutato');
    await expect.poll(() => no.isVisible(), WAIT).toBe(false);
    await page.close();
  });

  test('nobody speaks in the lesson of another', async () => {
    const post = async (path: string, body: unknown): Promise<Response> =>
      fetch(new URL(path, address), { method: 'POST', body: JSON.stringify(body) });
    const [mine, other] = await Promise.all(
      [1, 2].map(
        async () => (await (await post('/session', {})).json()) as { token: string; spaceId: string },
      ),
    );
    const speak = async (token: string | undefined): Promise<number> =>
      (await post('/words', { token, spaceId: mine?.spaceId, text: 'crea un foglio', topic: 'la luce' }))
        .status;
    expect([await speak(mine?.token), await speak(other?.token), await speak(undefined)]).toEqual([
      200, 404, 401,
    ]);
  });

  test('the page never has the secret key', async () => {
    const page = await browser.newPage();
    const bodies: Array<Promise<string>> = [];
    page.on('response', (response) => bodies.push(response.text().catch(() => '')));
    await page.goto(address);
    await page.getByText('Collegato.').waitFor(WAIT);
    expect((await Promise.all(bodies)).filter((body) => body.includes('"sk_'))).toEqual([]);
    await page.close();
  });
});

/** The address that the example prints. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.once('exit', (code) => reject(new Error(`the example ended with ${code}: ${text}`)));
    child.stdout?.on('data', (piece: Buffer) => {
      text += piece;
      const found = /Open (http:\S+)/.exec(text)?.[1];
      if (found) resolve(found);
    });
  });
}
