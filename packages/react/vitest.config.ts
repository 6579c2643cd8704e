import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { name: 'react', include: ['src/**/*.test.{ts,tsx}', 'tests/**/*.test.{ts,tsx}'] },
});
