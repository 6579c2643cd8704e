/** A place in a text. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Where the value at a JSON pointer stands in a JSON text; for a member its name is included. A pointer to something
 * that is missing leads to what would contain it. Nothing for a text that is not JSON.
 */
export function locateInJson(text: string, pointer: string): Range | undefined {
  const path = pointer === '' ? [] : pointer.slice(1).split('/').map(unescapePart);
  try {
    return find(new Scanner(text), path);
  } catch {
    return undefined;
  }
}

/** Where a text stops being JSON. */
export function placeOfMistake(text: string): number {
  const scanner = new Scanner(text);
  try {
    scanner.value();
    scanner.space();
  } catch {
    // The scanner stands where it could not go on.
  }
  return scanner.at;
}

function unescapePart(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Follows the path; each step narrows the range down. */
function find(scanner: Scanner, path: readonly string[]): Range {
  scanner.space();
  const start = scanner.at;
  const step = path[0];
  if (step === undefined || (scanner.next !== '{' && scanner.next !== '[')) {
    scanner.value();
    return { from: start, to: scanner.at };
  }
  let found: Range | undefined;
  const isObject = scanner.next === '{';
  const head = { from: start, to: start + 1 };
  scanner.members((name, from) => {
    if (name !== step || found) return scanner.value();
    const range = find(scanner, path.slice(1));
    found = isObject && path.length === 1 ? { from, to: range.to } : range;
  });
  return found ?? head;
}

const LITERAL = /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/;

class Scanner {
  readonly #text: string;
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get next(): string | undefined {
    return this.#text[this.at];
  }

  space(): void {
    while (this.next !== undefined && ' \t\r\n'.includes(this.next)) this.at += 1;
  }

  /** Calls `visit` before each value of an array or an object, with its name and where the name begins. */
  members(visit: (name: string, from: number) => void): void {
    const isObject = this.next === '{';
    this.at += 1;
    for (let index = 0; ; index += 1) {
      this.space();
      if (index === 0 && (this.next === '}' || this.next === ']')) break;
      const from = this.at;
      let name = String(index);
      if (isObject) {
        name = JSON.parse(this.string()) as string;
        this.space();
        this.expect(':');
      }
      this.space();
      visit(name, from);
      this.space();
      if (this.next === '}' || this.next === ']') break;
      this.expect(',');
    }
    this.at += 1;
  }

  value(): void {
    this.space();
    if (this.next === '{' || this.next === '[') this.members(() => this.value());
    else if (this.next === '"') this.string();
    else this.word();
  }

  string(): string {
    const start = this.at;
    this.expect('"');
    while (this.next !== '"') {
      if (this.next === undefined) throw new SyntaxError('the text ends within a string');
      this.at += this.next === '\\' ? 2 : 1;
    }
    this.at += 1;
    return this.#text.slice(start, this.at);
  }

  word(): void {
    const start = this.at;
    while (this.next !== undefined && /[-+.\w]/.test(this.next)) this.at += 1;
    if (LITERAL.test(this.#text.slice(start, this.at))) return;
    this.at = start;
    throw new SyntaxError(`a value is expected at ${start}`);
  }

  expect(character: string): void {
    if (this.next !== character) throw new SyntaxError(`"${character}" is expected at ${this.at}`);
    this.at += 1;
  }
}
