import { afterEach, describe, expect, test, vi } from 'vitest';
import { ToolgateClient } from '../client.js';
import type { ToolgatePlugin } from '../plugin.js';
import { browserPlugin } from './browser.js';
import { timePlugin } from './time.js';

function run(plugin: ToolgatePlugin, name: string, args: Record<string, unknown> = {}): Promise<unknown> {
  return new ToolgateClient({ url: 'http://127.0.0.1:1' }).use(plugin).execute({ name, args });
}

describe('time', () => {
  const plugin = () => timePlugin({ now: () => Date.UTC(2026, 10, 16, 12), timeZone: 'UTC' });
  test('is told in the zone that was asked for', async () => {
    expect(await run(plugin(), 'get_current_time', { timezone: 'Asia/Tokyo' })).toMatchObject({
      time: '2026-11-16T12:00:00.000Z',
      formatted: expect.stringMatching(/Monday, November 16, 2026.*9:00:00/),
      timezone: 'Asia/Tokyo',
    });
  });
  test('is told in the given zone otherwise', async () => {
    expect(await run(plugin(), 'get_current_time')).toMatchObject({ timezone: 'UTC' });
  });
  test('an unknown zone is an error with an example', async () => {
    await expect(run(plugin(), 'get_current_time', { timezone: 'Mars' })).rejects.toThrow(
      /no time zone "Mars"/,
    );
  });
});

describe('browser', () => {
  afterEach(() => vi.unstubAllGlobals());
  const page = (): { copied: string[] } => {
    const copied: string[] = [];
    vi.stubGlobal('window', {
      document: { title: 'Shop', documentElement: { lang: 'en' } },
      location: { href: 'https://shop.example/cart' },
      getSelection: () => 'two shoes',
      navigator: {
        clipboard: {
          writeText: async (text: string) => copied.push(text),
          readText: async () => copied.at(-1) ?? '',
        },
      },
    });
    return { copied };
  };
  test('the page is told', async () => {
    page();
    expect(await run(browserPlugin(), 'get_page_info')).toEqual({
      url: 'https://shop.example/cart',
      title: 'Shop',
      language: 'en',
    });
    expect(await run(browserPlugin(), 'get_selection')).toEqual({ text: 'two shoes', truncated: false });
  });
  test('the clipboard is written, and read only where that was allowed', async () => {
    const { copied } = page();
    await run(browserPlugin(), 'copy_to_clipboard', { text: 'x' });
    expect(copied).toEqual(['x']);
    await expect(run(browserPlugin(), 'read_clipboard')).rejects.toThrow(/no executor/);
    expect(await run(browserPlugin({ readClipboard: true }), 'read_clipboard')).toEqual({ text: 'x' });
  });
  test('elsewhere it says that there is no page', async () => {
    await expect(run(browserPlugin(), 'get_page_info')).rejects.toThrow(/does not run in a browser/);
  });
});
