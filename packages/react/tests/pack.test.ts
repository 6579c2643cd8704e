import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { beforeAll, describe, expect, test } from 'vitest';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const CLIENT = fileURLToPath(new URL('../../client', import.meta.url));
const TYPESCRIPT = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));
const PEERS = ['react', 'react-dom', 'scheduler', '@types/react', 'csstype'];

let app = '';
let readme = '';

beforeAll(async () => {
  app = await mkdtemp(join(tmpdir(), 'toolgate-react-app-'));
  const npm = (args: string[], cwd: string) =>
    execFileSync('npm', [...args, '--silent', '--no-audit', '--no-fund', '--ignore-scripts'], {
      cwd,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  for (const folder of [CLIENT, PACKAGE]) npm(['pack', '--pack-destination', app], folder);
  const tarballs = (await readdir(app)).filter((name) => name.endsWith('.tgz')).map((name) => `./${name}`);
  await writeFile(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
  npm(['install', '--offline', '--legacy-peer-deps', ...tarballs], app);
  for (const name of PEERS) {
    const from = dirname(fileURLToPath(import.meta.resolve(`${name}/package.json`)));
    cpSync(from, join(app, 'node_modules', name), { recursive: true });
  }
  readme = await readFile(join(PACKAGE, 'README.md'), 'utf8');
  const [, first = ''] = /```tsx\n([\s\S]*?)```/.exec(readme) ?? [];
  await writeFile(join(app, 'app.tsx'), first);
  return () => rm(app, { recursive: true });
}, 60_000);

describe('installed into an empty app', () => {
  test('it brings nothing along', async () => {
    const { dependencies, peerDependencies } = JSON.parse(
      await readFile(join(app, 'node_modules/@toolgate/react/package.json'), 'utf8'),
    );
    expect(dependencies).toBeUndefined();
    expect(Object.keys(peerDependencies)).toEqual(['@toolgate/client', 'react']);
  });

  test('the first screen of the README is right for TypeScript', async () => {
    const options = ['--strict', '--module', 'nodenext', '--jsx', 'react-jsx', '--noEmit', '--types', ''];
    expect(
      execFileSync(process.execPath, [TYPESCRIPT, ...options, 'app.tsx'], { cwd: app, encoding: 'utf8' }),
    ).toBe('');
  });

  test('a bundler takes the first screen, with its style', async () => {
    await writeFile(join(app, 'index.html'), '<script type="module" src="./main.tsx"></script>');
    await writeFile(
      join(app, 'main.tsx'),
      `import { createRoot } from 'react-dom/client';
       import App from './app.tsx';
       createRoot(document.body).render(<App />);`,
    );
    await build({ root: app, logLevel: 'silent' });
    const assets = await readdir(join(app, 'dist/assets'));
    const style = assets.find((name) => name.endsWith('.css')) ?? '';
    expect(await readFile(join(app, 'dist/assets', style), 'utf8')).toContain('.tg-chat');
  });

  test('a server renders it', async () => {
    await writeFile(
      join(app, 'server.js'),
      `import { createElement as h } from 'react';
       import { renderToString } from 'react-dom/server';
       import { ToolgateChat, ToolgateChatProvider } from '@toolgate/react';
       console.log(renderToString(h(ToolgateChatProvider, { url: 'http://127.0.0.1:1' }, h(ToolgateChat))));`,
    );
    const html = execFileSync(process.execPath, ['server.js'], { cwd: app, encoding: 'utf8' });
    expect(html).toContain('How can I help?');
  });
});
