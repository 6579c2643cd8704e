import { describe, expect, test } from 'vitest';
import { type Config, type Format, readAgent, writeAgent } from './agent-document.ts';

const CONFIG: Config = {
  description: 'Helps: with "orders".',
  instructions: 'You help.\n\nSay no more than you know.',
  model: { provider: 'demo', name: 'demo' },
  tools: ['getGoals', { name: 'pick', description: 'Picks.', parameters: { type: 'object' } }],
};

function configOf(text: string, format: Format = 'markdown'): unknown {
  const reading = readAgent(text, format, 'guide');
  return 'config' in reading ? reading.config : reading.mistake;
}

function placeOf(text: string, format: Format, pointer: string): string | undefined {
  const reading = readAgent(text, format, 'guide');
  const range = 'config' in reading ? reading.locate(pointer) : undefined;
  return range && text.slice(range.from, range.to).trim();
}

describe('an agent as a text', () => {
  test.each(['json', 'markdown'] as const)('%s says what was written', (format) => {
    expect(configOf(writeAgent(CONFIG, format), format)).toEqual(CONFIG);
  });

  test('the longer form keeps its system prompt in Markdown', () => {
    const longer = { version: '1.0', agent: { name: 'guide', system: 'You help.' }, tools: [] };
    const text = writeAgent(longer, 'markdown');
    expect(text).toMatch(/---\n\nYou help\.\n$/);
    expect(configOf(text)).toEqual(longer);
  });

  test('front matter may repeat the name, and no other', () => {
    expect(configOf('---\nname: guide\n---\nHi')).toEqual({ instructions: 'Hi' });
    expect(configOf('---\nname: other\n---\nHi')).toMatchObject({
      message: expect.stringContaining('"other"'),
    });
  });

  test('prompt tools of front matter become tools of JSON', () => {
    const text =
      '---\ntools:\n  - name: sum\n    description: Sums up\n    parameters: {text: {type: string, required: true}}\n' +
      '    prompt: "Sum {{text}}"\n---\n';
    expect(configOf(text)).toEqual({
      tools: [
        {
          name: 'sum',
          description: 'Sums up',
          parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
          executionType: 'prompt',
          execution: { prompt: 'Sum {{text}}' },
        },
      ],
    });
  });

  test('places of members are found in both formats', () => {
    const json = writeAgent(CONFIG, 'json');
    expect(placeOf(json, 'json', '/model/name')).toBe('"name": "demo"');
    const markdown = writeAgent(CONFIG, 'markdown');
    expect(placeOf(markdown, 'markdown', '/model/name')).toBe('name: demo');
    expect(placeOf(markdown, 'markdown', '/tools/1/name')).toBe('name: pick');
    expect(placeOf(markdown, 'markdown', '/instructions')).toMatch(/^You help\.[\s\S]*know\.$/);
    expect(placeOf(markdown, 'markdown', '/tools/1/timeout')).toBe('name');
  });

  test('a mistake has a place and words', () => {
    expect(configOf('{"a": ]', 'json')).toMatchObject({
      from: 6,
      message: expect.stringContaining('not JSON'),
    });
    expect(configOf('[]', 'json')).toMatchObject({ message: 'A configuration is an object.' });
    expect(configOf('no front matter')).toMatchObject({ from: 0 });
    expect(configOf('---\na: [1\n---\n')).toMatchObject({ from: expect.any(Number) });
  });
});
