import { version } from 'react';
import { expect, test } from 'vitest';

test('these tests run with React 18', () => {
  expect(version).toMatch(/^18\./);
});
