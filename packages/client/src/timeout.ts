import { CODES, PluginError } from './error.js';

const UNITS_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** A timer of JavaScript fires at once when it is told to wait for 25 days. */
const DAYS_MAX = 24;

/**
 * The milliseconds of a `timeout`: a number of them, or a string with its unit such as `30s`, as the gateway reads it. Throws
 * a `PluginError` for anything else; `owner` is what has the timeout, for its message.
 */
export function readTimeout(owner: string, timeout: number | string): number {
  const ms = typeof timeout === 'string' ? parsed(timeout) : timeout;
  if (typeof ms === 'number' && ms > 0 && ms <= DAYS_MAX * 86_400_000) return ms;
  const got = typeof timeout === 'string' ? `"${timeout}"` : String(timeout);
  const message = `the \`timeout\` of ${owner} is a number of milliseconds, or a string such as "30s", "10m" or "500ms", more than 0 and up to ${DAYS_MAX} days, got ${got}`;
  throw new PluginError(CODES.pluginInvalid, message);
}

function parsed(text: string): number | undefined {
  const [, amount, unit] = /^(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|h|d)$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(amount) * (UNITS_MS[unit] as number);
}
