import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Model } from './model.ts';
import { mintToken } from './token.ts';

const START_MS_MAX = 30_000;

/** What a gateway is started with. */
export interface GatewayOptions {
  /** Beside what is set here; `TOOLGATE_…` settings. */
  env?: Record<string, string>;
  /** The text of a configuration file (TOML). */
  config?: string;
  /** The default agent's model; the built-in demo without it. */
  model?: Pick<Model, 'baseUrl'>;
}

/** A running gateway with fresh keys and a data directory of its own. */
export interface Gateway {
  url: string;
  secretKey: string;
  publicKey: string;
  /** A token of the user `sub`. */
  token(sub: string, claims?: Record<string, unknown>): string;
  /** Its data directory. */
  data: string;
  /** Everything it has logged. */
  logs(): string;
  /** Kills it without a warning (SIGKILL). */
  kill(): Promise<void>;
  /** Starts it again at the same address with the same data. */
  restart(): Promise<void>;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
}

/** Starts the gateway that `TOOLGATE_BIN` names, or cargo's debug binary. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const data = await mkdtemp(join(tmpdir(), 'toolgate-test-'));
  const fresh = () => Math.random().toString(36).slice(2).padEnd(16, '0');
  const secretKey = `sk_test_${fresh()}${fresh()}`;
  const publicKey = `pk_test_${fresh()}${fresh()}`;
  const jwtSecret = `${fresh()}${fresh()}${fresh()}`;
  const env = {
    ...process.env,
    TOOLGATE_SECRET_KEY: secretKey,
    TOOLGATE_PUBLIC_KEY: publicKey,
    TOOLGATE_JWT_SECRET: jwtSecret,
    ...(options.model
      ? {
          TOOLGATE_MODEL_BASE_URL: options.model.baseUrl,
          TOOLGATE_MODEL_NAME: 'scripted',
          TOOLGATE_MODEL_API_KEY: 'none',
        }
      : {}),
    ...options.env,
  };
  const args = ['serve', '--data', join(data, 'data')];
  if (options.config !== undefined) {
    const file = join(data, 'toolgate.toml');
    await writeFile(file, options.config);
    args.push('--config', file);
  }
  let logs = '';
  let child: ChildProcess | undefined;
  const start = async (listen: string): Promise<string> => {
    const started = spawn(gatewayBinary(), [...args, '--listen', listen], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    return addressOf(started, (text) => {
      logs += text;
    });
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  };
  const url = await start('127.0.0.1:0');
  return {
    url,
    secretKey,
    publicKey,
    data: join(data, 'data'),
    token: (sub, claims) => mintToken(jwtSecret, sub, claims),
    logs: () => logs,
    kill: () => end('SIGKILL'),
    restart: async () => {
      await end('SIGKILL');
      await start(new URL(url).host);
    },
    stop: async () => {
      await end('SIGKILL');
      await rm(data, { recursive: true, force: true });
    },
  };
}

/** The gateway's program. */
export function gatewayBinary(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const target = process.env.CARGO_TARGET_DIR ?? join(cache, 'toolgate', 'target');
  const path = process.env.TOOLGATE_BIN ?? join(target, 'debug', 'toolgate');
  if (!existsSync(path)) throw new Error(`no gateway at ${path}: run \`cargo build\`, or set TOOLGATE_BIN`);
  return path;
}

/** The address that a gateway prints once it listens. */
function addressOf(child: ChildProcess, log: (text: string) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = '';
    const timer = setTimeout(() => reject(new Error(`the gateway did not start:\n${seen}`)), START_MS_MAX);
    const read = (piece: Buffer): void => {
      seen += piece;
      log(String(piece));
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(seen);
      if (address) {
        clearTimeout(timer);
        resolve(address[0]);
      }
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', (piece: Buffer) => {
      seen += piece;
      log(String(piece));
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`the gateway ended with ${code}:\n${seen}`));
    });
  });
}
