import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { name: 'voice-tutor', include: ['*.test.ts'], testTimeout: 30_000 } });
