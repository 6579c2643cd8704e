import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startGateway } from '@toolgate/test-support';
import { beforeAll, describe, expect, test } from 'vitest';
import { afterwards } from './world.js';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const TYPESCRIPT = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));

let app = '';
beforeAll(async () => {
  app = await mkdtemp(join(tmpdir(), 'toolgate-app-'));
  const npm = (args: string[], cwd: string) =>
    execFileSync('npm', [...args, '--silent', '--no-audit', '--no-fund'], {
      cwd,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  npm(['pack', '--ignore-scripts', '--pack-destination', app], PACKAGE);
  const [tarball] = (await readdir(app)).filter((name) => name.endsWith('.tgz'));
  await writeFile(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
  npm(['install', '--offline', `./${tarball}`], app);
  return () => rm(app, { recursive: true });
}, 60_000);

describe('installed into an empty app', () => {
  test('it brings nothing along', async () => {
    expect(await readdir(join(app, 'node_modules'))).toEqual(expect.not.arrayContaining(['zod']));
    expect(await readdir(join(app, 'node_modules', '@toolgate'))).toEqual(['client']);
    const { dependencies } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'));
    expect(dependencies).toBeUndefined();
  });

  test('a plain Node script runs', async () => {
    const gateway = await startGateway();
    afterwards(gateway.stop);
    await writeFile(
      join(app, 'main.js'),
      `import { ToolgateClient } from '@toolgate/client';
       import { timePlugin } from '@toolgate/client/plugins/time';
       import '@toolgate/client/plugins/fs';
       import '@toolgate/client/plugins/sqlite';
       import '@toolgate/client/plugins/mcp';
       import '@toolgate/client/plugins/browser';
       const client = new ToolgateClient({ url: process.argv[2], key: process.argv[3] }).use(timePlugin());
       const { toolResults, text } = await client.chat('use get_current_time');
       console.log(JSON.stringify({ tool: toolResults[0].toolName, text }));`,
    );
    const said = execFileSync(process.execPath, ['main.js', gateway.url, gateway.secretKey], {
      cwd: app,
      encoding: 'utf8',
    });
    expect(JSON.parse(said)).toMatchObject({ tool: 'get_current_time', text: /get_current_time/ });
  });

  test('the first screen of the README works', async () => {
    const gateway = await startGateway();
    afterwards(gateway.stop);
    const readme = await readFile(join(PACKAGE, 'README.md'), 'utf8');
    const [, script = '', shown = ''] = /```js\n([\s\S]*?)```\n\n((?: {4}.*\n)+)/.exec(readme) ?? [];
    await writeFile(join(app, 'first.js'), script.replace('http://127.0.0.1:8787', gateway.url));
    const env = { ...process.env, TOOLGATE_SECRET_KEY: gateway.secretKey };
    expect(execFileSync(process.execPath, ['first.js'], { cwd: app, encoding: 'utf8', env })).toBe(
      shown.replaceAll(/^ {4}/gm, ''),
    );
  });

  test('TypeScript knows its types, also without Node’s', async () => {
    await writeFile(
      join(app, 'main.ts'),
      `import { type Chunk, ToolgateClient } from '@toolgate/client';
       import { timePlugin } from '@toolgate/client/plugins/time';
       const client = new ToolgateClient({ url: 'http://127.0.0.1:8787' }).use(timePlugin());
       client.registerTool({
         name: 'add', description: 'Adds.',
         parameters: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
         execute: ({ a }) => a.toFixed(),
       });
       // @ts-expect-error: a is a number
       client.registerTool({ name: 'x', description: 'x', parameters: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }, execute: ({ a }) => a.trim() });
       export async function main(): Promise<void> {
         for await (const chunk of client.chatStream({ message: 'hi' })) {
           const seen: Chunk = chunk;
           if (seen.type === 'text') seen.value.trim();
         }
       }`,
    );
    const options = { strict: true, noEmit: true, target: 'es2022', lib: ['es2023', 'dom'], types: [] };
    for (const how of [{ module: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }]) {
      await writeFile(
        join(app, 'tsconfig.json'),
        JSON.stringify({ compilerOptions: { ...options, ...how }, files: ['main.ts'] }),
      );
      execFileSync(process.execPath, [TYPESCRIPT, '-p', app], { stdio: 'pipe' });
    }
  });

  test('what browsers load has nothing of Node in it', async () => {
    const dist = join(PACKAGE, 'dist');
    const seen = new Set<string>();
    const visit = async (file: string): Promise<void> => {
      if (seen.has(file)) return;
      seen.add(file);
      const text = await readFile(file, 'utf8');
      for (const [, target = ''] of text.matchAll(/(?:from|import)\s*\(?['"]([^'"]+)['"]/g)) {
        expect(target, file).not.toMatch(/^node:/);
        if (target.startsWith('.')) await visit(join(file, '..', target));
      }
    };
    for (const entry of ['index.js', 'plugins/browser.js', 'plugins/time.js', 'plugins/mcp.js'])
      await visit(join(dist, entry));
    expect(seen.size).toBeGreaterThan(15);
  });
});
