import { defineConfig } from 'vite';

/** The gateway that the development server passes requests on to. */
const GATEWAY = process.env.TOOLGATE_URL ?? 'http://127.0.0.1:8787';

export default defineConfig({
  server: {
    port: 5173,
    proxy: Object.fromEntries(['/v1', '/healthz', '/readyz', '/openapi.json'].map((path) => [path, GATEWAY])),
  },
  build: {
    target: 'es2023',
    // The polyfill and inlined assets would need exceptions in the content security policy.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      onwarn: (warning, warn) => {
        // `"use client"` is for server components, of which there are none.
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') warn(warning);
      },
    },
  },
});
