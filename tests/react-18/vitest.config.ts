import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { defineConfig } from 'vitest/config';

// The tests of `@toolgate/react` once more, with the React that is installed here. The testing library is pinned to
// another version than there, so that npm installs one beside this React.
const require = createRequire(import.meta.url);
const folderOf = (name: string): string => dirname(require.resolve(`${name}/package.json`));
const names = ['react', 'react-dom', '@testing-library/react'];

export default defineConfig({
  resolve: { alias: Object.fromEntries(names.map((name) => [name, folderOf(name)])) },
  test: {
    name: 'react-18',
    root: '../../packages/react',
    include: ['tests/chat.test.tsx', 'tests/server.test.tsx', '../../tests/react-18/*.test.ts'],
    testTimeout: 60_000,
  },
});
