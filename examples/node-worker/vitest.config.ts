import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { name: 'node-worker', include: ['*.test.ts'], testTimeout: 30_000 } });
