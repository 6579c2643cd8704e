#!/usr/bin/env node
// Starts the binary of this platform, which an optional dependency carries, and behaves as if it were the binary.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

/** How often it is checked that npm is still there. */
const PARENT_CHECK_MS = 250;
const platform = `${process.platform}-${process.arch}`;
const binary = findBinary();
if (binary === undefined) {
  console.error(
    `error: no binary for ${platform}: @toolgate/${platform} is not installed. Install without --omit=optional, ` +
      'on glibc-based Linux or macOS, x64 or arm64; anywhere else build from source with `cargo build --release`.',
  );
  process.exit(1);
}

const gateway = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    // A terminal sends Ctrl-C to the binary too, and a second SIGINT would end its graceful shutdown.
    if (signal === 'SIGINT' && (process.stdin.isTTY || process.stdout.isTTY)) return;
    gateway.kill(signal);
  });
}
// A signal to `npx` alone ends npm and the shell between npm and this process, and reaches nobody else.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    gateway.kill('SIGTERM');
  }, PARENT_CHECK_MS);
}
gateway.on('error', (error) => {
  console.error(`error: ${binary} does not start: ${error.message}`);
  process.exit(1);
});
gateway.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // Ends as the binary did, so that a shell reports the same.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

function findBinary() {
  try {
    return createRequire(import.meta.url).resolve(`@toolgate/${platform}/bin/toolgate`);
  } catch {
    return undefined;
  }
}
