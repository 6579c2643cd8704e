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
 * The gateway that runs at `TOOLGATE_URL` (http://127.0.0.1:8787 unless set), when `TOOLGATE_SECRET_KEY` is its key;
 * otherwise a new one on a free port, with its data in `toolgate-data` beside this file. Resolves when it answers.
 */
export async function findGateway() {
  const url = process.env.TOOLGATE_URL ?? 'http://127.0.0.1:8787';
  const known = process.env.TOOLGATE_SECRET_KEY;
  if (known && (await lives(url))) return { url, key: known, stop: () => {} };

  const key = `sk_${randomBytes(24).toString('hex')}`;
  const data = process.env.TOOLGATE_DATA ?? fileURLToPath(new URL('toolgate-data', import.meta.url));
  const [command, ...words] = gatewayCommand();
  const child = spawn(command, [...words, 'serve', '--listen', '127.0.0.1:0', '--data', data], {
    cwd: REPOSITORY,
    env: { ...process.env, CARGO_TARGET_DIR: TARGET, TOOLGATE_SECRET_KEY: key },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return { url: await addressOf(child), key, stop: () => child.kill('SIGTERM') };
}

const lives = (url) =>
  fetch(`${url}/healthz`).then(
    (response) => response.ok,
    () => false,
  );

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
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (address) resolve(address);
    });
  });
}
