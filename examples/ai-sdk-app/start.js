// Serves the page, and starts a gateway unless TOOLGATE_URL names one. Ctrl-C stops what this started.
import { createServer } from 'vite';
import { findGateway } from '../gateway.js';

const gateway = await findGateway(import.meta.dirname);
process.once('exit', gateway.stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0));

const page = await createServer({
  root: import.meta.dirname,
  clearScreen: false,
  server: {
    port: Number(process.env.PORT ?? 5173),
    // This server plays your backend: it holds the key, the browser never sees it.
    proxy: {
      '/api/chat': { target: gateway.url, headers: { authorization: `Bearer ${gateway.secretKey}` } },
    },
  },
});
await page.listen();
console.log(`\nOpen ${page.resolvedUrls?.local[0]}   (Ctrl-C stops everything)\n`);
