import { definePlugin } from '@toolgate/plugin';

const WORDS_PER_MINUTE = 230;

function wordsOf(text) {
  return text.match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu) ?? [];
}

/** The words that occur most, with how often; words of the same count in the order of the alphabet. */
function topWords(words, top) {
  const counts = new Map();
  for (const word of words) {
    const folded = word.toLowerCase();
    counts.set(folded, (counts.get(folded) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  return sorted.slice(0, top).map(([word, count]) => ({ word, count }));
}

export default definePlugin({
  id: 'text-statistics',
  name: 'Text statistics',
  version: '1.0.0',
  description: 'Counts characters, words, sentences and paragraphs of a text, and its most frequent words.',
  engine: '>=0.1',
  helpers: { WORDS_PER_MINUTE, wordsOf, topWords },
  tools: [
    {
      name: 'text_statistics',
      description:
        'Counts the characters, words, sentences and paragraphs of a text, estimates the reading time, and lists ' +
        'the most frequent words.',
      parameters: {
        type: 'object',
        properties: {
          text: { type: 'string', maxLength: 200000 },
          top: { type: 'integer', minimum: 0, maximum: 100, description: 'Words listed; 10 by default.' },
          minLength: { type: 'integer', minimum: 1, description: 'Shortest word listed; 1 by default.' },
        },
        required: ['text'],
        additionalProperties: false,
      },
      retry: 'safe',
      execute: ({ text, top = 10, minLength = 1 }) => {
        const words = wordsOf(text);
        const long = words.filter((word) => [...word].length >= minLength);
        const paragraphs = text.split(/\n\s*\n/).filter((part) => part.trim() !== '');
        const sentences = text.match(/[^.!?…\s][^.!?…]*(?:[.!?…]+|$)/g) ?? [];
        return {
          characters: [...text].length,
          charactersWithoutSpaces: [...text.replace(/\s/g, '')].length,
          words: words.length,
          sentences: sentences.length,
          paragraphs: paragraphs.length,
          readingMinutes: Number((words.length / WORDS_PER_MINUTE).toFixed(2)),
          longestWord: words.reduce((longest, word) => (word.length > longest.length ? word : longest), ''),
          topWords: topWords(long, top),
        };
      },
    },
  ],
});
