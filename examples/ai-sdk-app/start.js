// Serves the page, and starts a gateway unless TOOLGATE_URL names one. Ctrl-C stops what this started.
import { createServer } from 'vite';
import { findGateway } from '../gateway.js';
import { backend } from './backend.js';

const gateway = await findGateway(import.meta.dirname);
process.once('exit', gateway.stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0));

const page = await createServer({
  root: import.meta.dirname,
  clearScreen: false,
  plugins: [backend(gateway)],
  server: { port: Number(process.env.PORT ?? 5173), proxy: { '/api/chat': gateway.url } },
});
await page.listen();
console.log(`\nOpen ${page.resolvedUrls?.local[0]}   (Ctrl-C stops everything)\n`);
