#!/usr/bin/env node
// Starts the binary of this platform, which an optional dependency carries, and behaves as if it were the binary.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

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
