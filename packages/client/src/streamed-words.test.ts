import { expect, test } from 'vitest';
import { StreamedWords, type Words } from './streamed-words.js';

/** `start ID`, `delta ID WORDS`, `end ID WORDS` in; what is told, with `!` for void, out. */
function check(steps: string[], told: string): void {
  const words = new StreamedWords();
  const all: Words[] = steps.flatMap((step) => {
    const [, verb, id = '', text = ''] = /^(\w+) (\w+) ?(.*)$/.exec(step) ?? [];
    if (verb === 'start') return words.start('text', id);
    return verb === 'delta' ? words.delta('text', id, text) : words.end('text', id, text);
  });
  expect(all.map((word) => (word === 'void' ? '!' : word.value)).join('')).toBe(told);
}

test('deltas are told as they come, and not again at the end', () =>
  check(['start a', 'delta a x', 'delta a y', 'end a xy'], 'xy'));
test('what a cut swallowed is told at the end', () => check(['start a', 'delta a x', 'end a xyz'], 'xyz'));
test('a part of which nothing was seen is told whole', () => check(['end a xyz'], 'xyz'));
test('a part that begins again voids what it said', () =>
  check(['start a', 'delta a x', 'start a', 'delta a z', 'end a z'], 'x!z'));
test('a part that ends otherwise than it began is told anew', () =>
  check(['start a', 'delta a x', 'end a zz'], 'x!zz'));
test('parts before it are told again with it', () =>
  check(['delta a x', 'end a x', 'delta b y', 'end b q'], 'xy!xq'));
