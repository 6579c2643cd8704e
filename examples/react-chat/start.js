// Starts a gateway, puts the agent on it, and serves the page. Ctrl-C stops all of it.
import { readFile } from 'node:fs/promises';
import { ToolgateClient } from '@toolgate/client';
import { createServer } from 'vite';
import { findGateway } from '../gateway.js';
import { sessions } from './sessions.js';

const gateway = await findGateway(import.meta.dirname);
// Whatever ends this process takes the gateway along.
process.once('exit', gateway.stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0));

const agent = JSON.parse(await readFile(new URL('agent.json', import.meta.url), 'utf8'));
await new ToolgateClient({ url: gateway.url, key: gateway.secretKey }).agents.put('teapot-desk', agent);

const page = await createServer({
  root: import.meta.dirname,
  clearScreen: false,
  plugins: [sessions(gateway)],
  // The page talks to its own origin, so the gateway needs to know nothing about origins.
  server: { port: Number(process.env.PORT ?? 5173), proxy: { '/v1': gateway.url } },
});
await page.listen();
console.log(`\nOpen ${page.resolvedUrls?.local[0]}   (Ctrl-C stops everything)\n`);
