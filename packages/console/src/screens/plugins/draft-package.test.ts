import { expect, test } from 'vitest';
import { draftPackage } from './draft-package.ts';

test('a draft is a package with one tool whose parameters follow from the example', () => {
  expect(
    draftPackage({
      id: 'my-tool',
      code: 'return 1;',
      permissions: 'storage, ',
      example: { a: 'x', b: [1], c: null },
    }),
  ).toEqual({
    id: 'my-tool',
    name: 'my-tool',
    version: '0.0.1',
    tools: [
      {
        name: 'my_tool_run',
        description: 'Runs the draft of the plugin my-tool.',
        parameters: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'array' }, c: {} } },
        executorCode: 'return 1;',
      },
    ],
    permissions: ['storage'],
  });
});
