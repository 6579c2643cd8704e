import { generateKeyPairSync, sign } from 'node:crypto';
import { contentHash, type PluginPackage, packageHash } from '@toolgate/plugin';
import { expect, test } from 'vitest';
import { ToolgateClient } from '../client.js';
import type { PluginError } from '../error.js';
import { loadPackage, type PackageStorage } from './package.js';

const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const curators = { acme: publicKey };

/** The tool of the seed: the time in a zone. */
const draft: PluginPackage = {
  id: 'dev-time-plugin',
  name: 'Time Plugin',
  version: '1.0.0',
  engine: '>=0.1, <9',
  tools: [
    {
      name: 'get_current_time',
      description: 'Get the current date and time in a specified timezone',
      parameters: { type: 'object', properties: { timezone: { type: 'string' } } },
      executorCode: `
        const tz = args.timezone || 'UTC';
        const now = new Date();
        return {
          time: now.toISOString(),
          formatted: now.toLocaleString('en-US', { timeZone: tz }),
          timezone: tz
        }; // a comment at the end`,
    },
  ],
};

async function signed(document: PluginPackage = draft): Promise<Record<string, unknown>> {
  const signature = (text: string) => sign(null, Buffer.from(text), privateKey).toString('base64');
  const content = await contentHash(document);
  const half = { ...document, curatorId: 'acme', contentHash: content, signature: signature(content) };
  const hash = await packageHash(half);
  return { ...half, packageHash: hash, packageSignature: signature(`toolgate-plugin-v1:${hash}`) };
}

async function refused(loading: Promise<unknown>, words: RegExp, code = 'PLUGIN_UNTRUSTED'): Promise<void> {
  const error = await loading.then(
    () => undefined,
    (thrown: PluginError) => thrown,
  );
  expect(error?.message).toMatch(words);
  expect(error?.code).toBe(code);
}

test('a signed package becomes a plugin whose tools run', async () => {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1', key: 'sk_x' });
  const plugin = await loadPackage(JSON.stringify(await signed()), { curators });
  client.use(plugin);
  expect(plugin.verification).toMatchObject({ state: 'verified', curator: 'acme' });
  expect(client.getClientToolDefinitions()).toEqual([
    {
      name: 'get_current_time',
      description: 'Get the current date and time in a specified timezone',
      parameters: { type: 'object', properties: { timezone: { type: 'string' } } },
    },
  ]);
  const result = await client.execute({
    toolName: 'get_current_time',
    args: { timezone: 'America/New_York' },
  });
  expect(result).toMatchObject({ timezone: 'America/New_York', time: expect.stringMatching(/Z$/) });
});

test('an unsigned package is for development', async () => {
  await refused(loadPackage(draft, { curators }), /is not signed; only mode "development" loads it/);
  const plugin = await loadPackage(draft, { mode: 'development' });
  expect(plugin.verification).toEqual({ state: 'unsigned' });
});

test('a changed package is refused in development too', async () => {
  const changed = { ...(await signed()), permissions: ['fetch:evil.example.net'] };
  for (const mode of ['production', 'development'] as const) {
    await refused(loadPackage(changed, { curators, mode }), /PACKAGE_CHANGED/);
  }
});

test('a curator nobody trusts is refused', async () => {
  await refused(loadPackage(await signed()), /UNKNOWN_CURATOR/);
});

test('a key that has expired by now is refused', async () => {
  const expired = { acme: { publicKey, expires: '2026-01-01T00:00:00Z' } };
  await refused(loadPackage(await signed(), { curators: expired }), /KEY_EXPIRED/);
  await loadPackage(await signed(), { curators: expired, now: new Date('2025-12-31T00:00:00Z') });
});

test('signed tools alone are taken when the caller says so, and nothing is asked for', async () => {
  const { packageHash: _, packageSignature: __, ...half } = await signed();
  await refused(loadPackage(half, { curators }), /only the tools of package .* are signed/);
  await loadPackage(half, { curators, toolsOnlySignatures: true });
  const asking = { ...half, permissions: ['fetch:example.com'] };
  await refused(loadPackage(asking, { curators, toolsOnlySignatures: true }), /only the tools/);
});

test('storage is given to a package that asks for it', async () => {
  const counter: PluginPackage = {
    ...draft,
    permissions: ['storage'],
    tools: [
      {
        name: 'count',
        description: 'Counts.',
        executorCode:
          'const n = ((await storage.get("n")) ?? 0) + 1; await storage.set("n", n); return { n };',
      },
    ],
  };
  await refused(loadPackage(await signed(counter), { curators }), /asks for storage/);
  const kept = new Map<string, unknown>();
  const storage: PackageStorage = {
    get: async (key) => kept.get(key),
    set: async (key, value) => void kept.set(key, value),
    delete: async (key) => void kept.delete(key),
    list: async (prefix = '') => [...kept.keys()].filter((key) => key.startsWith(prefix)),
  };
  const plugin = await loadPackage(await signed(counter), { curators, storage });
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1', key: 'sk_x' }).use(plugin);
  await client.execute({ toolName: 'count', args: {} });
  expect(await client.execute({ toolName: 'count', args: {} })).toEqual({ n: 2 });
});

test('what is no package says where', async () => {
  await refused(loadPackage('{'), /is not JSON/, 'PLUGIN_INVALID');
  await refused(loadPackage({ ...draft, version: 'new' }), /\/version/, 'PLUGIN_INVALID');
  const broken = { ...draft, tools: [{ ...draft.tools[0], executorCode: 'return }' }] };
  const loading = loadPackage(broken, { mode: 'development' });
  await refused(loading, /"get_current_time" cannot be compiled/, 'PLUGIN_INVALID');
});

test('dependencies are in the ranges that packages write', async () => {
  const needing = { ...draft, id: 'top', tools: [{ ...draft.tools[0], name: 'top' }] } as PluginPackage;
  const client = (range: string) => async () =>
    new ToolgateClient({ url: 'http://127.0.0.1:1', key: 'sk_x' })
      .use(await loadPackage(draft, { mode: 'development' }))
      .use(
        await loadPackage(
          { ...needing, dependencies: { 'dev-time-plugin': range } },
          { mode: 'development' },
        ),
      );
  for (const range of ['1', '1.0', '^1.0', '>=0.9, <2', '*']) await client(range)();
  for (const range of ['2', '>=1.1, <2', '=1.0.1'])
    await expect(client(range)()).rejects.toThrow(/needs plugin/);
});
