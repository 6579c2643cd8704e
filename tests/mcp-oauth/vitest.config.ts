import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'mcp-oauth',
    include: ['tests/**/*.test.ts'],
    // For a machine with much else to do; nothing here waits for time to pass.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000, interval: 50 } },
  },
});
