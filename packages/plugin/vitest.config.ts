import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'plugin',
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    // Generous: nothing waits for it but a test that is about to fail.
    testTimeout: 30_000,
  },
});
