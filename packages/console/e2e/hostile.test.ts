import { type Model, startModel } from '@toolgate/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from './world.ts';

/** Texts that would do something if the console made HTML of them, or a link, or gave in to their size. */
const HOSTILE: Readonly<Record<string, string>> = {
  html: '<img src=x onerror="alert(1)"><script>alert(2)</script><iframe src="javascript:alert(3)"></iframe>',
  svg: '<svg onload=alert(4)><a xlink:href="javascript:alert(5)"><text y=20>click</text></a></svg>',
  links:
    '[one](javascript:alert(6)) [two](JaVaScRiPt:alert(7)) [three](data:text/html,<script>alert(8)</script>) ' +
    '[four](vbscript:x) <javascript:alert(9)> [five][r]\n\n[r]: javascript:alert(10)',
  images: '![pixel](https://tracker.example/pixel.png) ![inline](data:image/svg+xml,<svg onload=alert(11)>)',
  bidi: 'Pay \u202E000,1\u202C to \u2066evil\u2069.',
  deep: `${'> '.repeat(3000)}deep`,
  brackets: '['.repeat(20_000),
  table: `|a|b|\n|-|-|\n${'|<b>x</b>|javascript:alert(12)|\n'.repeat(300)}`,
};

/** A model that says what the message names, and a tool whose output is the same text in JSON. */
function script({ messages }: { messages: Array<{ role: string; content?: unknown }> }): string {
  const last = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content ?? '');
  const name = Object.keys(HOSTILE).find((one) => last.includes(`say ${one}`));
  return `Answer: ${name ? HOSTILE[name] : 'nothing'}\n\nEnd of the answer.`;
}

describe('what tools and models say', () => {
  let world: World;
  let model: Model;

  beforeAll(async () => {
    model = await startModel(script as never);
    world = await startWorld({ model });
    const output = {
      ...HOSTILE,
      rows: Array.from({ length: 50_000 }, (_, id) => ({ id, name: `row ${id}` })),
    };
    await world.client.agents.put('hostile', {
      description: `Sells trouble. ${HOSTILE.html} ${HOSTILE.bidi}`,
      instructions: 'Repeat.',
      tools: [
        {
          name: 'hostile_output',
          description: `Gives back trouble. ${HOSTILE.html} ${HOSTILE.bidi}`,
          parameters: { type: 'object', properties: {} },
          executionType: 'basic',
          execution: { mode: 'static', output },
        },
      ],
    });
  });

  afterAll(async () => {
    await world?.stop();
    await model?.stop();
  });

  test.each(Object.keys(HOSTILE))('never runs in the chat: %s', async (name) => {
    const page = await world.open('/chat?agent=hostile');
    await page.getByRole('textbox', { name: 'Message' }).fill(`say ${name}`);
    await page.keyboard.press('Enter');
    await page.getByText('End of the answer.').waitFor();
    const found = await page.getByRole('log').evaluate((log) => ({
      elements: log.querySelectorAll('script, iframe, object, embed, img, svg a, form[action]').length,
      links: [...log.querySelectorAll('a')].map((link) => link.protocol),
      handlers: [...log.querySelectorAll('*')].flatMap((element) =>
        element.getAttributeNames().filter((attribute) => attribute.startsWith('on')),
      ),
      controls: /[\u202A-\u202E\u2066-\u2069]/.test(log.textContent ?? ''),
    }));
    expect(found.elements).toBe(0);
    expect(found.handlers).toEqual([]);
    expect(found.links.filter((protocol) => !/^(https?|mailto):$/.test(protocol))).toEqual([]);
    expect(found.controls).toBe(false);
    expect(world.mistakes).toEqual([]);
    await page.context().close();
  });

  test('is drawn in part when it is huge, and never runs as the output of a tool', async () => {
    const page = await world.open('/tools/hostile_output');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    const output = page.getByLabel('Output', { exact: true });
    await output.getByText('[50,000]').waitFor();
    expect(await page.locator('script:not([src])').count()).toBe(0);
    expect(await output.evaluate((element) => element.querySelectorAll('*').length)).toBeLessThan(4000);
    await page.getByLabel('Search in Output').fill('row 49999');
    await output.getByText('“row 49999”').waitFor();
    expect(world.mistakes).toEqual([]);
  });

  test.each([
    '/tools',
    '/tools/hostile_output',
    '/agents',
    '/agents/hostile?tab=revisions',
    '/chat?agent=hostile',
  ])('reorders nothing on %s and in the command palette', async (path) => {
    const page = await world.open(path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByLabel('Search or jump to').fill('hostile');
    await page.getByRole('option', { name: /hostile_output/ }).waitFor();
    await page.getByRole('option', { name: /hostile.*Sells trouble/ }).waitFor();
    expect(await page.locator('body').textContent()).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    expect(world.mistakes).toEqual([]);
    await page.context().close();
  });
});
