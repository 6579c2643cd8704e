import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'example-ai-sdk-app',
    include: ['tests/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A busy machine takes its time to draw a page.
    expect: { poll: { timeout: 15_000 } },
  },
});
