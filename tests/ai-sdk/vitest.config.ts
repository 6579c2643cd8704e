import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'ai-sdk',
    include: ['tests/**/*.test.ts'],
    // For a machine with much else to do; nothing here waits for time to pass.
    testTimeout: 30_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000, interval: 20 } },
  },
});
