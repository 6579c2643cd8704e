import AxeBuilder from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, WAIT_MS_MAX, type World } from './world.ts';

const WAIT = { timeout: WAIT_MS_MAX };
const TOOL = {
  name: 'worksheet',
  description: 'Makes a worksheet.',
  parameters: { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] },
  executionType: 'basic',
  execution: { mode: 'pass-through' },
  approval: 'always',
  visibility: 'public',
  voicePrompt: 'Creare un foglio su {topic}?',
  voiceFeedback: 'Foglio su {topic} creato',
};

declare global {
  interface Window {
    /** What replaces the browser's speech, which a headless one does not have. */
    speech: { said: string[]; hear(words: string): void };
  }
}

function stubSpeech(): void {
  const said: string[] = [];
  let heard: ((words: string) => void) | undefined;
  class Recognition {
    onresult: ((event: unknown) => void) | undefined;
    onend: (() => void) | undefined;
    start(): void {
      heard = (transcript) => {
        this.onresult?.({ results: [[{ transcript }]] });
        this.onend?.();
      };
    }
    abort(): void {
      this.onend?.();
    }
  }
  const voice = { speak: ({ text }: { text: string }) => said.push(text), cancel: () => {} };
  Object.defineProperty(window, 'speechSynthesis', { value: voice });
  Object.defineProperty(window, 'SpeechRecognition', { value: Recognition });
  window.speech = { said, hear: (words) => heard?.(words) };
}

describe('voice in the chat', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
    await world.client.agents.put('tutor', { tools: [TOOL] });
  });

  afterAll(async () => {
    await world?.stop();
    expect(world?.mistakes).toEqual([]);
  });

  const LOOK = { locale: 'it-IT' };

  async function chat(): Promise<Page> {
    const page = await world.open('/chat?agent=tutor', LOOK);
    await page.addInitScript(stubSpeech);
    await page.reload();
    return page;
  }

  async function say(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
    await page.keyboard.press('Enter');
  }

  const card = (page: Page) => page.locator('[data-tool="worksheet"]').last();
  const said = (page: Page) => page.evaluate(() => window.speech.said);
  const answer = async (page: Page, words: string): Promise<void> => {
    await page.getByRole('button', { name: 'Listen', exact: true }).click();
    await page.getByText('Listening for yes or no').waitFor();
    await page.evaluate((heard) => window.speech.hear(heard), words);
  };

  test('is silent until it is turned on, then asks, hears the yes and confirms', async () => {
    const page = await chat();
    await say(page, 'worksheet "Gravità"');
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    expect(await said(page)).toEqual([]);
    await page.getByRole('button', { name: 'Voice off' }).click();
    await expect.poll(() => said(page), WAIT).toEqual(['Creare un foglio su Gravità?']);
    const { violations } = await new AxeBuilder({ page }).include('form').analyze();
    expect(violations.map(({ id }) => id)).toEqual([]);
    await answer(page, 'Sì, grazie');
    await card(page).getByText('Done').waitFor();
    await expect
      .poll(() => said(page), WAIT)
      .toEqual(['Creare un foglio su Gravità?', 'Foglio su Gravità creato']);
    await page.getByText('You said yes').waitFor();
    // The browser remembers, and says nothing of what is over.
    await page.reload();
    await card(page).getByText('Done').waitFor();
    await page.getByRole('button', { name: 'Voice on' }).waitFor();
    expect(await said(page)).toEqual([]);
  });

  test('a spoken no rejects, and other words are for the message', async () => {
    const page = await chat();
    await page.getByRole('button', { name: 'Voice off' }).click();
    await say(page, 'worksheet "Luce"');
    await expect.poll(() => said(page), WAIT).toEqual(['Creare un foglio su Luce?']);
    await answer(page, 'più tardi');
    await expect
      .poll(() => page.getByRole('textbox', { name: 'Message' }).inputValue(), WAIT)
      .toBe('più tardi');
    await answer(page, 'no');
    await card(page).getByText('Rejected').waitFor();
    await page.getByText('You said no').waitFor();
    expect(await said(page)).toEqual(['Creare un foglio su Luce?']);
  });
});
