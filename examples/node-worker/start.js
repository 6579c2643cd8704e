// Starts a gateway unless TOOLGATE_URL names one, and then the worker. Ctrl-C stops what this started.
import { findGateway } from '../gateway.js';

if (process.env.TOOLGATE_URL) {
  await import('./worker.js');
} else {
  const gateway = await findGateway(import.meta.dirname);
  // Whatever ends this process takes the gateway along.
  process.once('exit', gateway.stop);
  process.env.TOOLGATE_URL = gateway.url;
  process.env.TOOLGATE_SECRET_KEY = gateway.secretKey;
  console.log(`TOOLGATE_URL=${gateway.url} TOOLGATE_SECRET_KEY=${gateway.secretKey}`);
  await import('./worker.js');
  gateway.stop();
}
