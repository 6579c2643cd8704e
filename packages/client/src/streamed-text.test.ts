import { expect, test } from 'vitest';
import { StreamedText, type TextPiece } from './streamed-text.js';

/** `start ID`, `delta ID TEXT`, `end ID TEXT` in; the returned text, with `!` for void, out. */
function check(steps: string[], returned: string): void {
  const streamed = new StreamedText();
  const all: TextPiece[] = steps.flatMap((step) => {
    const [, verb, id = '', text = ''] = /^(\w+) (\w+) ?(.*)$/.exec(step) ?? [];
    if (verb === 'start') return streamed.start('text', id);
    return verb === 'delta' ? streamed.delta('text', id, text) : streamed.end('text', id, text);
  });
  expect(all.map((piece) => (piece === 'void' ? '!' : piece.value)).join('')).toBe(returned);
}

test('deltas are returned as they arrive, and not again at the end', () =>
  check(['start a', 'delta a x', 'delta a y', 'end a xy'], 'xy'));
test('text that a disconnect lost is returned at the end', () =>
  check(['start a', 'delta a x', 'end a xyz'], 'xyz'));
test('a part of which nothing was seen is returned whole', () => check(['end a xyz'], 'xyz'));
test('a part that begins again voids its text', () =>
  check(['start a', 'delta a x', 'start a', 'delta a z', 'end a z'], 'x!z'));
test('a part that ends differently is returned anew', () =>
  check(['start a', 'delta a x', 'end a zz'], 'x!zz'));
test('parts before it are returned again with it', () =>
  check(['delta a x', 'end a x', 'delta b y', 'end b q'], 'xy!xq'));
