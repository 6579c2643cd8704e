// Starts a gateway unless TOOLGATE_URL names one, and serves the pupil's page. Ctrl-C stops what this started.
import { ToolgateClient } from '@toolgate/client';
import { createServer } from 'vite';
import { findGateway } from '../gateway.js';
import { lessons, prepare } from './lesson.js';

const gateway = await findGateway(import.meta.dirname);
// Whatever ends this process takes the gateway along.
process.once('exit', gateway.stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0));

const client = new ToolgateClient({ url: gateway.url, key: gateway.secretKey });
await prepare(client);

const page = await createServer({
  root: `${import.meta.dirname}/page`,
  clearScreen: false,
  plugins: [lessons(client, gateway)],
  // The page talks to its own origin, so the gateway needs to know nothing about origins.
  server: { port: Number(process.env.PORT ?? 5173), proxy: { '/v1': gateway.url } },
});
await page.listen();
console.log(`\nOpen ${page.resolvedUrls?.local[0]}   (Ctrl-C stops everything)\n`);
