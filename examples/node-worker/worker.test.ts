import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { ToolgateClient } from '@toolgate/client';
import { type Gateway, gatewayBinary, startGateway } from '@toolgate/test-support';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

let gateway: Gateway;
let workers: ChildProcess[] = [];
beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  workers = [];
  await gateway.stop();
});

/** Starts the worker and gives what it says, line by line. */
function start(
  args: string[],
  env: Record<string, string | undefined> = {},
): { worker: ChildProcess; said: () => string; line: (words: RegExp) => Promise<RegExpExecArray> } {
  const worker = spawn(process.execPath, [fileURLToPath(new URL('start.js', import.meta.url)), ...args], {
    env: { ...process.env, TOOLGATE_URL: gateway.url, TOOLGATE_SECRET_KEY: gateway.secretKey, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  workers.push(worker);
  let text = '';
  let look = (): void => {};
  worker.stdout?.on('data', (piece: Buffer) => {
    text += piece;
    look();
  });
  const line = (words: RegExp) =>
    new Promise<RegExpExecArray>((resolve) => {
      look = () => {
        const found = words.exec(text);
        if (found) resolve(found);
      };
      look();
    });
  return { worker, said: () => text, line };
}

test('it answers a question with what its tool gave, and ends', async () => {
  const { worker, said } = start(['use', 'read_temperature']);
  const [code] = await once(worker, 'close');
  expect(code).toBe(0);
  expect(said()).toMatch(/serving read_temperature, open_window in space_/);
  expect(said()).toMatch(/read_temperature gave .*21\.5/);
  expect(said()).toMatch(/\[demo model\].*21\.5/);
});

test('without a gateway it starts one, and takes it along when it ends', async () => {
  const data = await mkdtemp(join(tmpdir(), 'toolgate-example-'));
  const { worker, said } = start(['use', 'read_temperature'], {
    TOOLGATE_URL: undefined,
    TOOLGATE_SECRET_KEY: undefined,
    TOOLGATE_DATA: data,
  });
  const [code] = await once(worker, 'close');
  expect(code).toBe(0);
  expect(said()).toMatch(/\[demo model\].*21\.5/);
  const [, url = ''] = /TOOLGATE_URL=(\S+)/.exec(said()) ?? [];
  await vi.waitFor(() => expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed'), 10_000);
  await rm(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

describe('where no gateway was built', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'toolgate-example-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

  /** Starts it with nothing but what is in the folder to run. */
  const startBare = async (): Promise<{ said: string; errors: string }> => {
    const script = fileURLToPath(new URL('start.js', import.meta.url));
    const worker = spawn(process.execPath, [script, 'use read_temperature'], {
      env: { PATH: folder, CARGO_TARGET_DIR: join(folder, 'target'), TOOLGATE_DATA: join(folder, 'data') },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    workers.push(worker);
    const [said, errors] = await Promise.all([readAll(worker.stdout), readAll(worker.stderr)]);
    return { said, errors };
  };

  test('it says that Cargo builds one, and shows how far Cargo is', async () => {
    // Cargo, as far as the example knows it: it tells of its progress, and becomes the gateway.
    const cargo = `#!/bin/sh\necho Compiling "$@" >&2\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec '${gatewayBinary()}' "$@"\n`;
    await writeFile(join(folder, 'cargo'), cargo, { mode: 0o755 });
    const { said, errors } = await startBare();
    expect(errors).toMatch(/^no gateway at .*target\/debug\/toolgate: Cargo builds one, about four minutes/);
    expect(errors).toMatch(/^Compiling run --locked --package toolgate -- serve/m);
    expect(said).toMatch(/\[demo model\].*21\.5/);
  });

  test('it says how to have one when there is no Cargo either', async () => {
    const { errors } = await startBare();
    expect(errors).toMatch(/no gateway: spawn cargo ENOENT; install Rust .*TOOLGATE_BIN.*TOOLGATE_URL/);
  });
});

test('it serves others until it is stopped, and a second one goes on in its place', async () => {
  const first = start([]);
  const [, space = ''] = await first.line(/in (space_\w+)/);
  const second = start([], { SPACE: space });
  await second.line(/in space_/);
  const client = new ToolgateClient({ url: gateway.url, key: gateway.secretKey });
  const ask = async (): Promise<string> => {
    const { runId } = await client.spaces.post(space, 'use open_window');
    for await (const event of client.runs.subscribe(runId ?? '')) if (event.type === 'run-finish') break;
    return (await client.runs.get(runId ?? '')).text ?? '';
  };
  expect(await ask()).toMatch(/opened/);
  first.worker.kill('SIGTERM');
  const [code] = await once(first.worker, 'exit');
  expect(code).toBe(0);
  expect(await ask()).toMatch(/opened/);
});
