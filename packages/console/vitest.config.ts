import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'console',
    include: ['src/**/*.test.{ts,tsx}', 'e2e/**/*.test.ts'],
    // Generous: nothing waits for it but a test that is about to fail.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    css: { modules: { classNameStrategy: 'non-scoped' } },
  },
});
