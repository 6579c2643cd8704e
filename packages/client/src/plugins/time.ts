import type { ToolgatePlugin } from '../plugin.js';
import { defineTool } from '../runnable.js';

/** Options of the time plugin. */
export interface TimeOptions {
  /** The time zone if the model names none; the machine's by default. */
  timeZone?: string;
  /** The clock, in milliseconds since 1970. */
  now?: () => number;
}

/** The current time in any time zone: `get_current_time`. */
export function timePlugin({ timeZone, now = Date.now }: TimeOptions = {}): ToolgatePlugin {
  return {
    name: 'time',
    version: '1.0.0',
    tools: [
      defineTool({
        name: 'get_current_time',
        description: 'Returns the current date and time in a time zone such as "Europe/Paris" or "UTC".',
        parameters: {
          type: 'object',
          properties: {
            timezone: { type: 'string', description: 'IANA time zone; the user’s own by default.' },
          },
          additionalProperties: false,
        },
        execute: ({ timezone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone }) => {
          const moment = new Date(now());
          return { time: moment.toISOString(), formatted: inZone(moment, timezone), timezone };
        },
      }),
    ],
  };
}

function inZone(moment: Date, timeZone: string): string {
  try {
    return new Intl.DateTimeFormat('en-US', { dateStyle: 'full', timeStyle: 'long', timeZone }).format(
      moment,
    );
  } catch {
    throw new Error(`there is no time zone "${timeZone}", expected one like "Europe/Paris"`);
  }
}
