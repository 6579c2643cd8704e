const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration, short: `340 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  if (ms < 1) return '< 1 ms';
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return two(ms, MINUTE, 'min', SECOND, 's');
  if (ms < DAY) return two(ms, HOUR, 'h', MINUTE, 'min');
  return two(ms, DAY, 'd', HOUR, 'h');
}

function two(ms: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const whole = Math.floor(ms / large);
  const rest = Math.floor((ms % large) / small);
  return rest === 0 ? `${whole} ${largeUnit}` : `${whole} ${largeUnit} ${rest} ${smallUnit}`;
}

/** A moment relative to now: `just now`, `5 min ago`, `in 2 h`; a date when it is more than a month away. */
export function formatRelative(time: string, now: number): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  const distance = Math.abs(now - at);
  if (distance < 5 * SECOND) return 'just now';
  if (distance > 30 * DAY) return new Date(at).toLocaleDateString(undefined, { dateStyle: 'medium' });
  const [unit, word] =
    distance < MINUTE
      ? [SECOND, 's']
      : distance < HOUR
        ? [MINUTE, 'min']
        : distance < DAY
          ? [HOUR, 'h']
          : [DAY, 'd'];
  const count = Math.floor(distance / (unit as number));
  return at > now ? `in ${count} ${word}` : `${count} ${word} ago`;
}

/** The time of day, with the date if it is another day than now. */
export function formatTimeOfDay(time: string, now: number): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  const isToday = at.toDateString() === new Date(now).toDateString();
  const clock = { hour: 'numeric', minute: '2-digit' } as const;
  return at.toLocaleString(undefined, { ...clock, ...(!isToday && { month: 'short', day: 'numeric' }) });
}

/** A moment with date, time and seconds, in the reader's time zone. */
export function formatExact(time: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime())
    ? time
    : at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** The time of day, with milliseconds. */
export function formatClock(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  const part = (value: number, width = 2): string => String(value).padStart(width, '0');
  return `${part(at.getHours())}:${part(at.getMinutes())}:${part(at.getSeconds())}.${part(at.getMilliseconds(), 3)}`;
}

/** A count with separators; from ten thousand on shortened: `12.3k`, `4.1M`. */
export function formatCount(count: number): string {
  if (Math.abs(count) < 10_000) return count.toLocaleString('en');
  if (Math.abs(count) < 1_000_000) return `${(count / 1000).toFixed(1).replace(/\.0$/, '')}k`;
  return `${(count / 1_000_000).toFixed(1).replace(/\.0$/, '')}M`;
}

/** A size: `512 B`, `3.4 kB`, `12 MB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, '')} ${units[unit]}`;
}

/** An id cut in the middle: the prefix and the last characters, by which people tell ids apart. */
export function shortId(id: string): string {
  const at = id.indexOf('_');
  const body = id.slice(at + 1);
  return body.length <= 10 ? id : `${id.slice(0, at + 1)}…${body.slice(-6)}`;
}
