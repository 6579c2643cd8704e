import { expect, test } from 'vitest';
import { ProtocolError } from './error.js';
import { EVENT_LENGTH_MAX, EventParser } from './sse.js';

/** However the text is cut, the events are the same. */
function check(text: string, events: Array<[id: string | undefined, event: string, data: string]>): void {
  for (let size = 1; size <= text.length; size += 1) {
    const parser = new EventParser();
    const seen = [];
    for (let at = 0; at < text.length; at += size) seen.push(...parser.push(text.slice(at, at + size)));
    expect(seen.map(({ id, event, data }) => [id, event, data])).toEqual(events);
  }
}

test('an event has an id, a type and data', () =>
  check('id: 7\nevent: x\ndata: {"a":1}\n\n', [['7', 'x', '{"a":1}']]));
test('lines end as they like', () =>
  check('data: a\r\n\r\ndata: b\r\rdata: c\n\n', [
    [undefined, 'message', 'a'],
    [undefined, 'message', 'b'],
    [undefined, 'message', 'c'],
  ]));
test('data in several lines is joined', () =>
  check('data: a\ndata:\ndata:b\n\n', [[undefined, 'message', 'a\n\nb']]));
test('comments and unknown fields are skipped', () =>
  check(': hi\nfoo: 1\ndata: a\n\n:\n\n', [[undefined, 'message', 'a']]));
test('an id holds until the next', () =>
  check('id: 1\ndata: a\n\ndata: b\n\n', [
    ['1', 'message', 'a'],
    ['1', 'message', 'b'],
  ]));
test('one space after the colon is not part of the value', () =>
  check('data:  a\n\n', [[undefined, 'message', ' a']]));
test('an event that was cut is dropped', () => check('data: a\n\ndata: b\n', [[undefined, 'message', 'a']]));
test('an event without data is none', () => check('event: x\n\n', []));
test('the wish for a pause is told', () => {
  const wishes: number[] = [];
  new EventParser((ms) => wishes.push(ms)).push('retry: 1500\nretry: soon\n\n');
  expect(wishes).toEqual([1500]);
});
test('an event without end is refused', () => {
  const parser = new EventParser();
  const piece = 'x'.repeat(1024 * 1024);
  parser.push('data: ');
  const flood = (): void => {
    for (let sent = 0; sent <= EVENT_LENGTH_MAX; sent += piece.length) parser.push(piece);
  };
  expect(flood).toThrow(ProtocolError);
});
test('many lines of one event are refused as well', () => {
  const parser = new EventParser();
  const line = `data: ${'x'.repeat(1024 * 1024)}\n`;
  const flood = (): void => {
    for (let sent = 0; sent <= EVENT_LENGTH_MAX + line.length; sent += line.length) parser.push(line);
  };
  expect(flood).toThrow(ProtocolError);
});
