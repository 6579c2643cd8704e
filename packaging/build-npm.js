#!/usr/bin/env node
// Packs the npm package `toolgate` and one package per platform that carries its binary:
//
//   node packaging/build-npm.js --out DIR linux-x64=PATH [darwin-arm64=PATH …]
//
// `toolgate` names all platforms as optional dependencies, of which npm installs the one that fits.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const platforms = JSON.parse(readFileSync(join(here, 'platforms.json'), 'utf8'));

const { values, positionals } = parseArgs({ options: { out: { type: 'string' } }, allowPositionals: true });
if (!values.out || positionals.length === 0) {
  throw new Error('usage: node packaging/build-npm.js --out DIR PLATFORM=BINARY…');
}
const out = resolve(values.out);
const common = {
  version: workspaceVersion(),
  license: 'Apache-2.0',
  // Where it is published from: npm compares it with the provenance.
  ...(process.env.GITHUB_REPOSITORY && {
    repository: { type: 'git', url: `git+https://github.com/${process.env.GITHUB_REPOSITORY}.git` },
  }),
};

for (const argument of positionals) {
  const [name, binary] = argument.split('=');
  const platform = platforms[name];
  if (!platform || !binary) {
    throw new Error(
      `${argument}: expected PLATFORM=BINARY, with one of ${Object.keys(platforms).join(', ')}`,
    );
  }
  pack(name, (folder) => {
    mkdirSync(join(folder, 'bin'));
    copyFileSync(binary, join(folder, 'bin/toolgate'));
    chmodSync(join(folder, 'bin/toolgate'), 0o755);
    return {
      name: `@toolgate/${name}`,
      description: `The binary of toolgate for ${name}.`,
      ...common,
      os: [platform.os],
      cpu: [platform.cpu],
      ...(platform.libc && { libc: [platform.libc] }),
      files: ['bin'],
      preferUnplugged: true,
    };
  });
}

pack('toolgate', (folder) => {
  copyFileSync(join(here, 'npm/toolgate.js'), join(folder, 'toolgate.js'));
  return {
    name: 'toolgate',
    description: 'A durable server for AI agents and their tools.',
    ...common,
    type: 'module',
    bin: { toolgate: 'toolgate.js' },
    files: ['toolgate.js'],
    engines: { node: '>=20' },
    optionalDependencies: Object.fromEntries(
      Object.keys(platforms).map((name) => [`@toolgate/${name}`, common.version]),
    ),
  };
});

/** Packs a folder of files and the package.json that `fill` gives; prints the path of the tarball. */
function pack(name, fill) {
  const folder = join(out, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  copyFileSync(join(here, 'package-readme.md'), join(folder, 'README.md'));
  const manifest = fill(folder);
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', out], {
    cwd: folder,
    encoding: 'utf8',
  });
  rmSync(folder, { recursive: true });
  console.log(join(out, packed.trim()));
}

function workspaceVersion() {
  const version = /^\[workspace\.package\]\nversion = "([^"]+)"/m.exec(
    readFileSync(join(root, 'Cargo.toml'), 'utf8'),
  );
  if (!version) throw new Error('Cargo.toml has no version below [workspace.package]');
  return version[1];
}
