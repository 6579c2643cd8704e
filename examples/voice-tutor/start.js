// Starts a gateway unless TOOLGATE_URL names one, and then the tutor. Ctrl-C stops what this started.
import { findGateway } from '../gateway.js';

if (process.env.TOOLGATE_URL) {
  await import('./tutor.js');
} else {
  const gateway = await findGateway(import.meta.dirname);
  // Whatever ends this process takes the gateway along.
  process.once('exit', gateway.stop);
  process.env.TOOLGATE_URL = gateway.url;
  process.env.TOOLGATE_SECRET_KEY = gateway.secretKey;
  await import('./tutor.js');
  gateway.stop();
}
