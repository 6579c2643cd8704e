import { defineConfig } from 'vitest/config';

/** Takes the pictures of the documentation; the tests are in `vitest.config.ts`. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['e2e/pictures.take.ts'],
    testTimeout: 90_000,
    hookTimeout: 90_000,
  },
});
