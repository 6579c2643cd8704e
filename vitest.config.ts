import { defineConfig } from 'vitest/config';

// Each package says for itself how its tests run.
export default defineConfig({
  test: {
    projects: ['packages/*/vitest.config.ts', 'examples/*/vitest.config.ts', 'tests/*/vitest.config.ts'],
  },
});
