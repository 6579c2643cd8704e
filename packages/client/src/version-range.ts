type Version = readonly [major: number, minor: number, patch: number];
type Bound = { atLeast: Version; below?: Version };

const PARTIAL = String.raw`(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?`;
const COMPARATOR = new RegExp(String.raw`^(\^|~|>=|<=|>|<|=)?\s*v?${PARTIAL}$`);

/** Whether a string is a version: `major.minor.patch`, with an optional `-` or `+` suffix. */
export function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$/.test(text);
}

/**
 * Whether a version is in a range: `*`, `1.2.3`, `1.x`, `^1.2`, `~1.2`, `>=1 <3`, and several of these with
 * `||`. Suffixes after `-` or `+` are ignored. `undefined` if the range cannot be parsed.
 */
export function satisfies(version: string, range: string): boolean | undefined {
  const read = readVersion(version);
  const choices = range.split('||').map(readRange);
  if (read === undefined || choices.includes(undefined)) return undefined;
  return choices.some((bounds) => bounds?.every((bound) => within(read, bound)));
}

function readVersion(text: string): Version | undefined {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text);
  return match ? [Number(match[1]), Number(match[2]), Number(match[3])] : undefined;
}

function readRange(text: string): Bound[] | undefined {
  const trimmed = text.trim().replace(/(\^|~|>=|<=|>|<|=)\s+/g, '$1');
  if (trimmed === '' || trimmed === '*') return [];
  const bounds = trimmed.split(/\s+/).map(readBound);
  return bounds.includes(undefined) ? undefined : (bounds as Bound[]);
}

function readBound(text: string): Bound | undefined {
  const match = COMPARATOR.exec(text);
  if (!match) return undefined;
  const [, operator, ...parts] = match;
  const numbers = parts.map((part) => (part === undefined || /[xX*]/.test(part) ? undefined : Number(part)));
  const [major, minor, patch] = numbers;
  if (major === undefined) return { atLeast: [0, 0, 0] };
  const atLeast: Version = [major, minor ?? 0, patch ?? 0];
  // The first version that is no longer covered by a partial one like `1.2`.
  const next: Version =
    minor === undefined
      ? [major + 1, 0, 0]
      : patch === undefined
        ? [major, minor + 1, 0]
        : [major, minor, patch + 1];
  switch (operator) {
    case '>=':
      return { atLeast };
    case '>':
      return { atLeast: next };
    case '<':
      return { atLeast: [0, 0, 0], below: atLeast };
    case '<=':
      return { atLeast: [0, 0, 0], below: next };
    case '~':
      return { atLeast, below: minor === undefined ? [major + 1, 0, 0] : [major, minor + 1, 0] };
    case '^':
      return { atLeast, below: caret(major, minor, patch) };
    default:
      return { atLeast, below: next };
  }
}

/** Up to the next change of the first non-zero number. */
function caret(major: number, minor: number | undefined, patch: number | undefined): Version {
  if (major > 0 || minor === undefined) return [major + 1, 0, 0];
  if (minor > 0 || patch === undefined) return [0, minor + 1, 0];
  return [0, 0, patch + 1];
}

function within(version: Version, { atLeast, below }: Bound): boolean {
  return compare(version, atLeast) >= 0 && (below === undefined || compare(version, below) < 0);
}

function compare(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
