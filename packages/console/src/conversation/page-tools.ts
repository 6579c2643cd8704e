import type { Tools } from '@toolgate/react';

const COUNT_MAX = 30;
const TICK_MS = 1000;

/** Tools that this page executes. The agent learns of those with a description when a message is sent. */
export const PAGE_TOOLS: Tools = {
  get_page_time: {
    description: "Returns the date, the time and the time zone of the user's browser.",
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    execute: () => ({
      time: new Date().toString(),
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      language: navigator.language,
    }),
  },
  set_page_color: {
    description: "Colours the chat on the user's page.",
    parameters: {
      type: 'object',
      properties: { color: { type: 'string', description: 'A CSS colour, such as "teal" or "#0a7".' } },
      required: ['color'],
      additionalProperties: false,
    },
    execute: ({ color }: { color: string }) => setPageColor(color),
  },
  count_slowly: {
    description: "Counts up on the user's page, one per second, and reports progress.",
    parameters: {
      type: 'object',
      properties: { to: { type: 'integer', minimum: 1, maximum: COUNT_MAX } },
      required: ['to'],
      additionalProperties: false,
    },
    execute: async ({ to }: { to: number }, { progress, signal }) => {
      for (let count = 1; count <= Math.min(to, COUNT_MAX); count += 1) {
        await pause(TICK_MS, signal);
        await progress({ progress: count, total: to });
      }
      return { counted: to };
    },
  },
};

/** Handlers of client tools that agents declare themselves. */
export const AGENT_TOOLS: Tools = {
  pick_color: ({ color }: { color: string }) => setPageColor(color),
};

function setPageColor(color: string): { color: string } {
  if (!CSS.supports('color', color))
    throw new Error(`"${color}" is not a CSS colour, expected one like "teal"`);
  document.documentElement.style.setProperty('--page-color', color);
  return { color };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new Error('the call was cancelled'));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
