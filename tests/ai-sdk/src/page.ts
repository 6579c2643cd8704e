import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type InlineConfig, preview } from 'vite';
import type { Dialect } from './sdk.ts';

/** The page of `page/`, built with one major of the AI SDK, on a server of its own. */
export interface Site {
  url: string;
  stop(): Promise<void>;
}

export async function startSite(dialect: Dialect): Promise<Site> {
  const outDir = await mkdtemp(join(tmpdir(), `toolgate-page-${dialect}-`));
  const config: InlineConfig = {
    configFile: false,
    root: fileURLToPath(new URL('../page', import.meta.url)),
    logLevel: 'error',
    resolve: {
      alias: { '@sdk/ai': `ai-${dialect}`, '@sdk/react': `react-${dialect}` },
      // The hook and the page must hold the same React.
      dedupe: ['react', 'react-dom'],
    },
    build: { outDir, minify: false, target: 'esnext', reportCompressedSize: false },
    preview: { host: '127.0.0.1', port: 0 },
  };
  await build(config);
  const server = await preview(config);
  const url = server.resolvedUrls?.local[0];
  if (!url) throw new Error('the page has no address');
  return {
    url,
    stop: async () => {
      await server.close();
      await rm(outDir, { recursive: true, force: true });
    },
  };
}
