import { expect, test } from 'vitest';
import { previewOf } from './preview.ts';

test.each([
  ['image/png', 'image'],
  ['image/svg+xml', 'text'],
  ['text/html', 'text'],
  ['text/markdown; charset=utf-8', 'markdown'],
  ['application/json', 'text'],
  ['application/zip', 'none'],
])('%s is shown as %s', (mimeType, kind) => {
  expect(previewOf({ mimeType, bytes: 10 })).toBe(kind);
});

test('a large file is not shown', () => {
  expect(previewOf({ mimeType: 'image/png', bytes: 3_000_000 })).toBe('none');
});
