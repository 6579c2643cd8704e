import { definePlugin } from '@toolgate/plugin';

function isContainer(value) {
  return typeof value === 'object' && value !== null;
}

/** The differences of two JSON values, each with its JSON pointer. */
function changesOf(before, after, path) {
  if (Object.is(before, after)) return [];
  const alike = isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after);
  if (!alike) return [{ op: 'replace', path, before, after }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => {
    const place = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (!Object.hasOwn(before, name)) return [{ op: 'add', path: place, after: after[name] }];
    if (!Object.hasOwn(after, name)) return [{ op: 'remove', path: place, before: before[name] }];
    return changesOf(before[name], after[name], place);
  });
}

/** A JSON value, or the one that a text holds: models give either. */
function jsonOf(given) {
  if (typeof given !== 'string') return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

export default definePlugin({
  id: 'json-diff',
  name: 'JSON diff',
  version: '1.0.0',
  description: 'Says what differs between two JSON values.',
  engine: '>=0.1',
  helpers: { isContainer, changesOf, jsonOf },
  tools: [
    {
      name: 'diff_json',
      description:
        'Compares two JSON values, given as values or as texts, and lists what was added, removed and replaced, ' +
        'each with its JSON pointer.',
      parameters: {
        type: 'object',
        properties: {
          before: { description: 'The old value.' },
          after: { description: 'The new value.' },
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: 1000,
            description: 'Most changes listed; 100 by default.',
          },
        },
        required: ['before', 'after'],
        additionalProperties: false,
      },
      retry: 'safe',
      execute: ({ before, after, limit = 100 }) => {
        const changes = changesOf(jsonOf(before), jsonOf(after), '');
        return { equal: changes.length === 0, count: changes.length, changes: changes.slice(0, limit) };
      },
    },
  ],
});
