import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { name: 'example-react-chat', include: ['tests/**/*.test.ts'], testTimeout: 120_000 },
});
