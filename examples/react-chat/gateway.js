import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
/** Where `make` builds. */
const CACHE = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
const TARGET = process.env.CARGO_TARGET_DIR ?? join(CACHE, 'toolgate', 'target');

/**
 * The gateway of `TOOLGATE_URL` and its keys, or one of our own on a free port with fresh keys and its data in
 * `toolgate-data` beside this file. Resolves when it answers.
 */
export async function startGateway() {
  const keys = {
    secretKey: process.env.TOOLGATE_SECRET_KEY ?? `sk_${randomBytes(24).toString('hex')}`,
    publicKey: process.env.TOOLGATE_PUBLIC_KEY ?? `pk_${randomBytes(16).toString('hex')}`,
    jwtSecret: process.env.TOOLGATE_JWT_SECRET ?? randomBytes(32).toString('hex'),
  };
  if (process.env.TOOLGATE_URL) return { ...keys, url: process.env.TOOLGATE_URL, stop: () => {} };

  const [command, ...words] = gatewayCommand();
  const data = process.env.TOOLGATE_DATA ?? fileURLToPath(new URL('toolgate-data', import.meta.url));
  const child = spawn(command, [...words, 'serve', '--listen', '127.0.0.1:0', '--data', data], {
    cwd: REPOSITORY,
    env: {
      ...process.env,
      CARGO_TARGET_DIR: TARGET,
      TOOLGATE_SECRET_KEY: keys.secretKey,
      TOOLGATE_PUBLIC_KEY: keys.publicKey,
      TOOLGATE_JWT_SECRET: keys.jwtSecret,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return { ...keys, url: await addressOf(child), stop: () => child.kill('SIGTERM') };
}

/** A gateway that was built already, or Cargo, which builds one first. */
function gatewayCommand() {
  const built = [process.env.TOOLGATE_BIN, join(TARGET, 'debug/toolgate')].find(
    (path) => path && existsSync(path),
  );
  return built ? [built] : ['cargo', 'run', '--quiet', '--package', 'toolgate', '--'];
}

/** Reads the address that the gateway prints when it listens. */
function addressOf(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code} before it listened`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const address = /listens on (http:\S+?),?(\s|$)/.exec(line)?.[1];
      if (address) resolve(address);
    });
  });
}
