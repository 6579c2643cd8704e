import type { ToolgatePlugin } from '../plugin.js';
import { defineTool } from '../runnable.js';
import type { RunnableTool } from '../tool.js';

const SELECTION_LENGTH_MAX = 20_000;

/** Options of the browser plugin. */
export interface BrowserOptions {
  /** Whether the model may read the clipboard too. The browser asks the user for permission. */
  readClipboard?: boolean;
}

const NOTHING = { type: 'object', properties: {}, additionalProperties: false } as const;

/**
 * The page that the user looks at: `get_page_info`, `get_selection`, `copy_to_clipboard`, and optionally
 * `read_clipboard`.
 */
export function browserPlugin({ readClipboard = false }: BrowserOptions = {}): ToolgatePlugin {
  const tools: RunnableTool[] = [
    defineTool({
      name: 'get_page_info',
      description: 'Returns the URL, the title and the language of the page that the user looks at.',
      parameters: NOTHING,
      execute: () => {
        const { document, location } = page();
        return { url: location.href, title: document.title, language: document.documentElement.lang || null };
      },
    }),
    defineTool({
      name: 'get_selection',
      description: 'Returns the text that the user has selected on the page; empty if there is none.',
      parameters: NOTHING,
      execute: () => {
        const text = page().getSelection()?.toString() ?? '';
        return { text: text.slice(0, SELECTION_LENGTH_MAX), truncated: text.length > SELECTION_LENGTH_MAX };
      },
    }),
    defineTool({
      name: 'copy_to_clipboard',
      description: 'Copies a text to the user’s clipboard.',
      parameters: {
        type: 'object',
        properties: { text: { type: 'string', description: 'The text to copy.' } },
        required: ['text'],
        additionalProperties: false,
      },
      execute: async ({ text }) => {
        await clipboard().writeText(text);
        return { copied: true };
      },
    }),
  ];
  if (readClipboard) {
    tools.push(
      defineTool({
        name: 'read_clipboard',
        description: 'Reads the text on the user’s clipboard.',
        parameters: NOTHING,
        execute: async () => ({ text: await clipboard().readText() }),
      }),
    );
  }
  return { name: 'browser', version: '1.0.0', tools };
}

function page(): Window {
  if (typeof window === 'undefined') throw new Error('there is no page, this code does not run in a browser');
  return window;
}

function clipboard(): Clipboard {
  const { clipboard: found } = page().navigator;
  if (!found) throw new Error('the browser gives no access to the clipboard, which needs HTTPS');
  return found;
}
