import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));
/** Where `make` builds. */
const CACHE = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
const TARGET = process.env.CARGO_TARGET_DIR ?? join(CACHE, 'toolgate', 'target');
const BUILT = join(TARGET, 'debug/toolgate');
const CARGO = 'cargo';
const HOW_TO_HAVE_ONE =
  'install Rust (https://rustup.rs), or set TOOLGATE_BIN to a binary, or TOOLGATE_URL to a gateway that runs';

/** What a gateway's default project opens with, and where that stands in the environment. */
const KEYS = {
  secretKey: { variable: 'TOOLGATE_SECRET_KEY', fresh: () => `sk_${randomBytes(24).toString('hex')}` },
  publicKey: { variable: 'TOOLGATE_PUBLIC_KEY', fresh: () => `pk_${randomBytes(16).toString('hex')}` },
  jwtSecret: { variable: 'TOOLGATE_JWT_SECRET', fresh: () => randomBytes(32).toString('hex') },
};

/**
 * The gateway of `TOOLGATE_URL` with the keys in the environment; without that variable one of our own on a free port,
 * with fresh keys and its data in `toolgate-data` in `folder`. Resolves when it answers.
 */
export async function findGateway(folder) {
  const url = process.env.TOOLGATE_URL;
  const keys = {};
  for (const [name, { variable, fresh }] of Object.entries(KEYS)) {
    keys[name] = process.env[variable] ?? (url ? undefined : fresh());
    if (!keys[name]) throw new Error(`TOOLGATE_URL is set; expected ${variable} beside it`);
  }
  return url ? { ...keys, url, stop: () => {} } : startGateway(folder, keys);
}

async function startGateway(folder, keys) {
  const [command, ...words] = gatewayCommand();
  if (command === CARGO)
    console.error(`no gateway at ${BUILT}: Cargo builds one, about four minutes on two cores`);
  const data = process.env.TOOLGATE_DATA ?? join(folder, 'toolgate-data');
  const child = spawn(command, [...words, 'serve', '--listen', '127.0.0.1:0', '--data', data], {
    cwd: REPOSITORY,
    env: {
      ...process.env,
      CARGO_TARGET_DIR: TARGET,
      ...Object.fromEntries(Object.entries(KEYS).map(([name, { variable }]) => [variable, keys[name]])),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return { ...keys, url: await addressOf(child), stop: () => child.kill('SIGTERM') };
}

/** A gateway that was built already, or Cargo, which builds one first and shows how far it is. */
function gatewayCommand() {
  if (process.env.TOOLGATE_BIN) return [process.env.TOOLGATE_BIN];
  return existsSync(BUILT) ? [BUILT] : [CARGO, 'run', '--locked', '--package', 'toolgate', '--'];
}

/** Reads the address that the gateway prints when it listens. */
function addressOf(child) {
  return new Promise((resolve, reject) => {
    child.once('error', ({ message }) => reject(new Error(`no gateway: ${message}; ${HOW_TO_HAVE_ONE}`)));
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code} before it listened`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const address = /listens on (http:\S+?),?(\s|$)/.exec(line)?.[1];
      if (address) resolve(address);
    });
  });
}
