import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'react',
    testTimeout: 60_000,
    include: ['src/**/*.test.{ts,tsx}', 'tests/**/*.test.{ts,tsx}'],
  },
});
