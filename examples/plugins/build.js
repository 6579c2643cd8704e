// Turns the source of each plugin into its package, signed: `node build.js CURATOR KEY.pem`. Without arguments it
// prints which packages are not up to date, and fails if there is one.

import { execFileSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';

const SIGNED = ['contentHash', 'signature', 'packageHash', 'packageSignature', 'curatorId', 'keyId'];
const here = new URL('./', import.meta.url);
const entries = await readdir(here, { withFileTypes: true });
const names = entries
  .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
  .map(({ name }) => name);
const [curator, key] = process.argv.slice(2);
let stale = 0;
for (const name of names.sort()) {
  const { default: source } = await import(new URL(`${name}/plugin.js`, here).href);
  const file = new URL(`${name}/${name}.json`, here);
  if (curator === undefined) {
    const kept = JSON.parse(await readFile(file, 'utf8').catch(() => '{}'));
    for (const member of SIGNED) delete kept[member];
    if (JSON.stringify(kept) === JSON.stringify(source)) continue;
    console.error(
      `examples/plugins/${name}/${name}.json is not what its source says; run: make sign-examples`,
    );
    stale += 1;
  } else {
    await writeFile(file, `${JSON.stringify(source, null, 2)}\n`);
    const gateway = process.env.TOOLGATE_BIN ?? 'toolgate';
    execFileSync(gateway, ['plugin', 'sign', file.pathname, '--key', key, '--curator', curator], {
      stdio: 'inherit',
    });
  }
}
process.exitCode = stale > 0 ? 1 : 0;
