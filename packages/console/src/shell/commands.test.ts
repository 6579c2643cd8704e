import { expect, test } from 'vitest';
import { type Command, rank } from './commands.tsx';

function command(group: string, title: string, about = ''): Command {
  return { id: `${group} ${title}`, group, title, about, icon: null };
}

const ALL = [
  command('Go to', 'Runs', 'What agents did'),
  command('Go to', 'Tools', 'The registry'),
  command('Try a tool', 'lookup_order', 'Looks up an order'),
  command('Try a tool', 'order_tea', ''),
];

test('every word must occur, in the title, the group or the description', () => {
  expect(rank(ALL, 'tool order').map(({ title }) => title)).toEqual(['order_tea', 'lookup_order'].sort());
  expect(rank(ALL, 'agents did').map(({ title }) => title)).toEqual(['Runs']);
  expect(rank(ALL, 'nothing')).toEqual([]);
});

test('within a group, titles that begin with the words come first', () => {
  expect(rank(ALL, 'order').map(({ title }) => title)).toEqual(['order_tea', 'lookup_order']);
});
