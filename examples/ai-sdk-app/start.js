// Starts a gateway unless TOOLGATE_URL names one, puts the agent on it, and serves the page. Ctrl-C stops what this started.
import { readFile } from 'node:fs/promises';
import { createServer } from 'vite';
import { findGateway } from '../gateway.js';
import { backend } from './backend.js';

const gateway = await findGateway(import.meta.dirname);
process.once('exit', gateway.stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0));

const put = await fetch(`${gateway.url}/v1/agents/page-studio`, {
  method: 'PUT',
  headers: { authorization: `Bearer ${gateway.secretKey}`, 'content-type': 'application/json' },
  body: await readFile(new URL('agent.json', import.meta.url), 'utf8'),
});
if (!put.ok) throw new Error(`the agent was not taken: ${await put.text()}`);

const page = await createServer({
  root: import.meta.dirname,
  clearScreen: false,
  plugins: [backend(gateway)],
  server: {
    port: Number(process.env.PORT ?? 5173),
    // A build of the packages beside it does not reload the page.
    watch: { ignored: ['**/packages/*/dist/**'] },
    proxy: {
      '/api/chat': {
        target: gateway.url,
        rewrite: (path) => path.replace('/api/chat', '/v1/agents/page-studio/chat'),
      },
      '/api/calls': { target: gateway.url, rewrite: (path) => path.replace('/api', '/v1') },
      '/api/runs': { target: gateway.url, rewrite: (path) => path.replace('/api', '/v1') },
    },
  },
});
await page.listen();
console.log(`\nOpen ${page.resolvedUrls?.local[0]}   (Ctrl-C stops everything)\n`);
