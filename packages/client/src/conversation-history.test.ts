import { expect, test } from 'vitest';
import { readHistory } from './conversation-history.js';
import { GoneError } from './error.js';
import { Spaces } from './resources.js';
import type { Event } from './wire.js';

const message = (text: string, more: object = {}) => ({
  type: 'message',
  message: { messageId: 'msg_1', parts: [{ type: 'text', text }], ...more },
});
const says = (runId: string, text: string) => ({ type: 'text-end', id: '1.0', runId, text });

/** A space with this log: pages of two events, runs that ended at these places, events up to `deletedUpTo` deleted. */
function space(events: object[], { ends = [], hasMoreRuns = false, deletedUpTo = 0 }: Log = {}) {
  const log = events.map((event, index) => ({ seq: index + 1, ...event }) as Event);
  const read: number[] = [];
  const json = async (path: string, { query }: { query: { after: number } }): Promise<unknown> => {
    if (path.endsWith('/runs'))
      return { runs: ends.map((seq) => ({ seq })), nextCursor: hasMoreRuns ? 'run_0' : null };
    const { after } = query;
    read.push(after);
    if (after < deletedUpTo) {
      const problem = { status: 410, code: 'PAST_RETENTION', snapshot: { deletedUpTo } };
      throw new GoneError('PAST_RETENTION', 'deleted', { problem: problem as never });
    }
    const page = log.filter(({ seq }) => seq > after).slice(0, 2);
    return { events: page, nextCursor: page.length < 2 ? null : page[1]?.seq };
  };
  return { spaces: new Spaces({ json } as never), read };
}
interface Log {
  ends?: number[];
  hasMoreRuns?: boolean;
  deletedUpTo?: number;
}

const history = (made: ReturnType<typeof space>, options = {}) =>
  readHistory(made, 'space_1', options, new AbortController().signal);

test('messages and replies are read over all pages, and nothing else', async () => {
  const made = space([
    { type: 'run-start', runId: 'run_1' },
    message('Hi', { from: 'ent_1' }),
    { type: 'reasoning-end', id: '1.1', runId: 'run_1', text: 'hm' },
    says('run_1', 'Let me look.'),
    { type: 'tool-output-available', runId: 'run_1', toolCallId: 'call_1', output: { text: 'x' } },
    says('run_1', 'Found.'),
    message('Due', { origin: { type: 'plan' } }),
    message('', { parts: [{ type: 'image', url: 'x' }] }),
    says('run_1', 'Done.'),
    { type: 'from-a-newer-gateway' },
  ]);
  expect(await history(made)).toEqual([
    { role: 'user', text: 'Hi', from: 'ent_1' },
    { role: 'assistant', text: 'Let me look.\n\nFound.' },
    { role: 'notice', text: 'Due' },
    { role: 'assistant', text: 'Done.' },
  ]);
});

test('replies of two runs at once stay apart', async () => {
  const made = space([says('run_1', 'One'), says('run_2', 'Two'), says('run_1', 'one')]);
  expect((await history(made)).map(({ text }) => text)).toEqual(['One\n\none', 'Two']);
});

test('a history that a client has sent stands for everything before it', async () => {
  const turns = [
    { user: [{ type: 'text', text: 'hi' }] },
    { assistant: [{ text: 'hello' }, { call: { name: 'look', input: {}, output: {} } }] },
  ];
  const made = space([message('lost'), { type: 'history', turns }, message('more')]);
  expect(await history(made)).toEqual([
    { role: 'user', text: 'hi' },
    { role: 'assistant', text: 'hello' },
    { role: 'user', text: 'more' },
  ]);
});

test('it is bounded in messages and in bytes, from its end', async () => {
  const words = Array.from({ length: 60 }, (_, number) => `${number}`.padStart(2, '0'));
  const texts = async (options = {}) =>
    (await history(space(words.map((text) => message(text))), options)).map(({ text }) => text);
  expect(await texts()).toEqual(words.slice(10));
  expect(await texts({ messages: 3 })).toEqual(words.slice(57));
  expect(await texts({ bytes: 5 })).toEqual(words.slice(58));
  expect(await texts({ bytes: 1 })).toEqual([]);
  const wide = space([message('a'), message('è'), message('b')]);
  expect(await history(wide, { bytes: 2 })).toEqual([{ role: 'user', text: 'b' }]);
});

test('of a long space the last runs are read, and what was deleted is passed over', async () => {
  const events = Array.from({ length: 9 }, (_, number) => message(`${number + 1}`));
  const long = space(events, { ends: [9, 6, 7], hasMoreRuns: true });
  expect((await history(long)).map(({ text }) => text)).toEqual(['7', '8', '9']);
  expect(long.read[0]).toBe(6);
  const short = space(events, { ends: [9, 6, 7], deletedUpTo: 7 });
  expect((await history(short)).map(({ text }) => text)).toEqual(['8', '9']);
  expect(short.read.slice(0, 2)).toEqual([0, 7]);
});
