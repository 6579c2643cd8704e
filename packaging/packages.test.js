// Builds the npm packages and the wheel from a built binary, installs them from the files, with no registry in reach,
// and sends the README's first message to what they start.
//
//   TOOLGATE_BIN=PATH [UV=PATH] node --test packaging/packages.test.js
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

// Packing a debug binary takes seconds, on a busy machine minutes.
const STEP_MS_MAX = 300_000;
const here = dirname(fileURLToPath(import.meta.url));
const platform = `${process.platform}-${process.arch}`;
const folder = mkdtempSync(join(tmpdir(), 'toolgate-packages-'));
const binary = join(folder, 'toolgate');
const groups = [];
const environment = {
  // The address of nobody: whoever asks a registry fails.
  npm_config_registry: 'http://127.0.0.1:9/',
  npm_config_offline: 'true',
  npm_config_cache: join(folder, 'npm-cache'),
  PIP_NO_INDEX: '1',
  UV_OFFLINE: '1',
  UV_CACHE_DIR: join(folder, 'uv-cache'),
  UV_PYTHON_DOWNLOADS: 'never',
};

before(() => run('strip', ['-o', binary, process.env.TOOLGATE_BIN]));
after(() => {
  for (const group of groups) {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
  rmSync(folder, { recursive: true, force: true });
});

describe('the npm packages', () => {
  const app = join(folder, 'app');
  const launcher = join(app, 'node_modules/.bin/toolgate');

  before(() => {
    const packed = run('node', [
      join(here, 'build-npm.js'),
      '--out',
      join(folder, 'npm'),
      `${platform}=${binary}`,
    ]);
    run('mkdir', [app]);
    writeFileSync(join(app, 'package.json'), '{"private": true}');
    run('npm', ['install', '--no-audit', '--no-fund', ...packed.trim().split('\n')], app);
  });

  test('npx starts a gateway that answers, and stops it', () => serves('npx', ['toolgate'], app));

  // SIGINT to npx alone is not tried: the shell that npm puts in between waits for its child before it obeys.
  test('SIGTERM to npx alone stops the gateway in order', async () => {
    const gateway = await start('npx', ['toolgate'], app);
    gateway.child.kill('SIGTERM');
    await gateway.ended;
    assert.throws(() => process.kill(gateway.pid, 0), { code: 'ESRCH' }, 'the gateway ends after npx');
    assert.ok(!existsSync(join(gateway.data, 'pid')), 'it was drained and ended in peace');
  });

  test('the launcher ends as the binary ends', async () => {
    const wrong = spawnSync(launcher, ['no-such-command'], { encoding: 'utf8' });
    const direct = spawnSync(binary, ['no-such-command'], { encoding: 'utf8' });
    assert.equal(wrong.status, direct.status);
    assert.equal(wrong.stderr, direct.stderr);

    const killed = await start(launcher, [], app);
    process.kill(killed.pid, 'SIGKILL');
    assert.deepEqual(await killed.ended, [null, 'SIGKILL']);

    for (const signal of ['SIGTERM', 'SIGINT']) {
      const asked = await start(launcher, [], app);
      asked.child.kill(signal);
      assert.deepEqual(await asked.ended, [0, null], 'it was drained and ended in peace');
    }
  });

  test('the launcher says which package is missing', () => {
    const scope = join(app, 'node_modules/@toolgate');
    renameSync(scope, `${scope}-away`);
    const refused = spawnSync(launcher, ['--version'], { encoding: 'utf8' });
    renameSync(`${scope}-away`, scope);
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, new RegExp(`@toolgate/${platform} is not installed`));
  });
});

describe('the wheel', () => {
  const build = (tag) => [
    join(here, 'build-wheel.py'),
    ...['--platform', platform, '--binary', binary, '--out', join(folder, 'wheel'), '--tag', tag],
  ];
  let wheel;
  before(() => {
    // What is built here runs here: the tag that no index accepts, because it promises nothing.
    const machine = run('uname', ['-m']).trim();
    const tag = process.platform === 'linux' ? `linux_${machine}` : `macosx_11_0_${machine}`;
    wheel = run('python3', build(tag)).trim();
  });

  test('pip installs a binary that answers', async () => {
    const venv = join(folder, 'venv');
    run('python3', ['-m', 'venv', venv]);
    run(join(venv, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', wheel]);
    await serves(join(venv, 'bin/toolgate'), [], folder);
  });

  test('uvx starts a binary that answers', { skip: !process.env.UV && 'UV is not set' }, () =>
    serves(process.env.UV, ['tool', 'run', '--from', wheel, 'toolgate'], folder),
  );

  test('a tag that promises an older glibc is refused', { skip: process.platform !== 'linux' }, () => {
    const refused = spawnSync('python3', build('manylinux_2_5_x86_64'), { encoding: 'utf8' });
    assert.equal(refused.status, 1);
    assert.match(
      refused.stderr,
      /needs glibc 2\.\d+, but the tag manylinux_2_5_x86_64 promises that 2\.5 is enough/,
    );
    assert.ok(!existsSync(join(folder, 'wheel', wheel.replace(/linux_\w+/, 'manylinux_2_5_x86_64'))));
  });
});

/** Starts a gateway by a command, sends it the README's first message, and stops it as Ctrl-C in a terminal does. */
async function serves(command, first, cwd) {
  const gateway = await start(command, first, cwd);
  const { command: curl, answer } = readmeFirstMessage();
  const told = JSON.parse(
    execFileSync('bash', ['-c', curl.replace('localhost:8787', gateway.address)], {
      env: { ...process.env, KEY: gateway.key },
      encoding: 'utf8',
      timeout: STEP_MS_MAX,
    }),
  );
  assert.equal(told.status, answer.status);
  assert.equal(told.text, answer.text);
  process.kill(-gateway.child.pid, 'SIGINT');
  await gateway.ended;
  assert.throws(() => process.kill(gateway.pid, 0), { code: 'ESRCH' }, 'the gateway ends with its launcher');
}

/** Starts `serve` on a free port with data of its own; gives its address, its own process id and the key it prints. */
async function start(command, first, cwd) {
  const data = mkdtempSync(join(folder, 'data-'));
  const child = spawn(command, [...first, 'serve', '--listen', '127.0.0.1:0', '--data', data], {
    cwd,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, which one signal reaches.
    detached: true,
  });
  groups.push(child.pid);
  // Not `exit`: the output is open as long as anybody of the group lives.
  const ended = once(child, 'close', { signal: AbortSignal.timeout(STEP_MS_MAX) });
  let said = '';
  child.stderr.on('data', (piece) => {
    said += piece;
  });
  let key;
  let address;
  for await (const line of createInterface({ input: child.stdout })) {
    said += `${line}\n`;
    key ??= /\bsk_\w+/.exec(line)?.[0];
    address ??= /http:\/\/(127\.0\.0\.1:\d+)/.exec(line)?.[1];
    if (address && key) {
      child.stdout.resume();
      return { child, ended, address, key, data, pid: Number(readFileSync(join(data, 'pid'), 'utf8')) };
    }
  }
  assert.fail(`${command} did not start a gateway:\n${said}`);
}

/** The first `curl` of the README, and the JSON document that is shown below it. */
function readmeFirstMessage() {
  const readme = readFileSync(join(here, '../README.md'), 'utf8');
  const blocks = [...readme.matchAll(/(?:^ {4}.*\n)+/gm)].map((block) => block[0].replace(/^ {4}/gm, ''));
  const at = blocks.findIndex((block) => block.includes('curl '));
  const command = blocks[at].slice(blocks[at].indexOf('curl '));
  // What is cut from the answer is marked so.
  return { command, answer: JSON.parse(blocks[at + 1].replace(/,\s*…\s*}/, '}')) };
}

function run(command, parameters, cwd) {
  return execFileSync(command, parameters, {
    cwd,
    env: { ...process.env, ...environment },
    encoding: 'utf8',
    timeout: STEP_MS_MAX,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
