import { definePlugin } from '@toolgate/plugin';

function zoneOf(name) {
  try {
    new Date(0).toLocaleString('en-US', { timeZone: name });
    return name;
  } catch {
    throw new Error(`there is no time zone "${name}", expected one like "Europe/Paris" or "UTC"`);
  }
}

function momentOf(text) {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) {
    throw new Error(`"${text}" is no moment, expected one like "2027-01-31T09:00:00Z"`);
  }
  return moment;
}

export default definePlugin({
  id: 'time',
  name: 'Time',
  version: '1.0.0',
  description: 'The current time in any time zone, and the time between two moments.',
  engine: '>=0.1',
  helpers: { zoneOf, momentOf },
  tools: [
    {
      name: 'get_current_time',
      description: 'Returns the current date and time in a time zone such as "Europe/Paris".',
      parameters: {
        type: 'object',
        properties: {
          timezone: { type: 'string', description: 'IANA time zone; UTC by default.' },
        },
        additionalProperties: false,
      },
      retry: 'safe',
      execute: ({ timezone = 'UTC' }) => {
        const timeZone = zoneOf(timezone);
        const now = new Date();
        return { time: now.toISOString(), formatted: now.toLocaleString('en-US', { timeZone }), timezone };
      },
    },
    {
      name: 'time_between',
      description:
        'Returns how much time lies between two moments in RFC 3339; negative if they are reversed.',
      parameters: {
        type: 'object',
        properties: {
          from: { type: 'string', description: 'Such as 2027-01-31T09:00:00Z.' },
          to: { type: 'string', description: 'Such as 2027-02-01T10:30:00+01:00.' },
        },
        required: ['from', 'to'],
        additionalProperties: false,
      },
      retry: 'safe',
      execute: ({ from, to }) => {
        const seconds = (momentOf(to).getTime() - momentOf(from).getTime()) / 1000;
        const rest = Math.abs(seconds);
        const sign = seconds < 0 ? '-' : '';
        const days = Math.floor(rest / 86400);
        const hours = Math.floor((rest % 86400) / 3600);
        const minutes = Math.floor((rest % 3600) / 60);
        return { seconds, text: `${sign}${days} d ${hours} h ${minutes} min` };
      },
    },
  ],
});
