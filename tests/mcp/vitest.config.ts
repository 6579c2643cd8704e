import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'mcp',
    include: ['tests/**/*.test.ts'],
    // For a machine with much else to do.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
