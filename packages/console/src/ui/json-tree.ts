/** A member of a JSON value. */
export interface Member {
  readonly name: string;
  readonly value: unknown;
  /** Its JSON pointer (RFC 6901). */
  readonly pointer: string;
}

export function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The members of an array or an object. */
export function childrenOf(value: object, pointer: string): Member[] {
  return Object.entries(value).map(([name, member]) => ({
    name,
    value: member,
    pointer: pointerTo(pointer, name),
  }));
}

/** The JSON pointer of a member of the value at `pointer`. */
export function pointerTo(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** What stands for a value that is folded: `{3}` or `[12]`, with the first names of an object. */
export function summary(value: object): string {
  if (Array.isArray(value)) return `[${value.length.toLocaleString('en')}]`;
  const names = Object.keys(value);
  if (names.length === 0) return '{}';
  const shown = names.slice(0, 3).join(', ');
  return `{ ${shown.slice(0, 60)}${names.length > 3 || shown.length > 60 ? ', …' : ''} }`;
}

/** Members whose name or text contains `text`, ignoring case, in the order of the value; at most `max`. */
export function matches(value: unknown, text: string, max: number): Member[] {
  const wanted = text.toLowerCase();
  const found: Member[] = [];
  const left: Member[] = [{ name: '', value, pointer: '' }];
  while (left.length > 0 && found.length < max) {
    const next = left.pop() as Member;
    const isLeafMatch = !isBranch(next.value) && String(next.value).toLowerCase().includes(wanted);
    if (isLeafMatch || (next.name !== '' && next.name.toLowerCase().includes(wanted))) found.push(next);
    if (isBranch(next.value)) left.push(...childrenOf(next.value, next.pointer).reverse());
  }
  return found;
}
