import { PackageError } from './error.js';

/** Deepest nesting that everybody reads. */
const DEPTH_MAX = 127;

/**
 * The canonical text of a JSON value (RFC 8785). Throws for what has none, or what others would read
 * differently: numbers beyond 2^53 - 1, lone surrogates, more than 127 levels, and whatever is not JSON.
 */
export function canonicalJson(value: unknown): string {
  return write(value, '', 0);
}

function write(value: unknown, pointer: string, depth: number): string {
  switch (typeof value) {
    case 'boolean':
      return String(value);
    case 'number':
      return writeNumber(value, pointer);
    case 'string':
      return writeText(value, pointer);
    case 'object':
      if (value === null) return 'null';
      if (depth === DEPTH_MAX) {
        throw new PackageError('PACKAGE_INVALID', `nests deeper than ${DEPTH_MAX} levels`);
      }
      if (Array.isArray(value)) return writeArray(value, pointer, depth + 1);
      return writeObject(value as Record<string, unknown>, pointer, depth + 1);
    default:
      throw new PackageError('PACKAGE_INVALID', `a ${typeof value} is not JSON`, pointer);
  }
}

function writeNumber(value: number, pointer: string): string {
  if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) {
    const message = `the number ${value} is beyond 2^53 - 1, which not everybody reads alike, write it as a text`;
    throw new PackageError('PACKAGE_INVALID', message, pointer);
  }
  // The number format of RFC 8785 is that of JavaScript; this also writes -0 as 0.
  return JSON.stringify(value);
}

function writeText(value: string, pointer: string): string {
  // Escapes lone surrogates, which UTF-8 cannot hold; everything else is written as RFC 8785 wants it.
  if (/\p{Surrogate}/u.test(value)) {
    throw new PackageError('PACKAGE_INVALID', 'a text with half a character cannot be hashed', pointer);
  }
  return JSON.stringify(value);
}

function writeArray(items: unknown[], pointer: string, depth: number): string {
  return `[${Array.from(items, (item, index) => write(item, `${pointer}/${index}`, depth)).join(',')}]`;
}

function writeObject(members: Record<string, unknown>, pointer: string, depth: number): string {
  // The order of JavaScript's sort is that of UTF-16, as RFC 8785 wants it.
  const written = Object.keys(members)
    .sort()
    .map((name) => {
      const place = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      return `${writeText(name, place)}:${write(members[name], place, depth)}`;
    });
  return `{${written.join(',')}}`;
}
