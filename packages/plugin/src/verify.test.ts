import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { contentHash, packageHash } from './hash.js';
import type { PluginPackage } from './package.js';
import { type CuratorKey, type Curators, verifyPackage } from './verify.js';

const NOW = new Date('2026-11-17T12:00:00Z');
const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const draft: PluginPackage = {
  id: 'clock',
  name: 'Clock',
  version: '1.0.0',
  tools: [{ name: 'now', description: 'The time.', executorCode: 'return Date.now();' }],
};
const signature = (text: string) => sign(null, Buffer.from(text), privateKey).toString('base64');

async function signed(more: object = {}): Promise<Record<string, unknown>> {
  const content = await contentHash(draft);
  const document = {
    ...draft,
    curatorId: 'acme',
    contentHash: content,
    signature: signature(content),
    ...more,
  };
  const hash = await packageHash(document);
  return { ...document, packageHash: hash, packageSignature: signature(`toolgate-plugin-v1:${hash}`) };
}

const told = async (document: unknown, curators: Curators) => {
  const verification = await verifyPackage(document, curators, { now: NOW });
  return verification.state === 'rejected' ? verification.code : verification.state;
};

describe('a key counts', () => {
  const key = (more: object): CuratorKey => ({ publicKey, ...more });
  test.each([
    [key({}), 'verified'],
    [key({ notBefore: '2026-11-17T12:00:00Z' }), 'verified'],
    [key({ notBefore: '2026-11-17T12:00:01Z' }), 'KEY_NOT_YET_VALID'],
    [key({ expires: '2026-11-17T12:00:01Z' }), 'verified'],
    [key({ expires: '2026-11-17T12:00:00Z' }), 'KEY_EXPIRED'],
    [key({ revoked: true }), 'KEY_REVOKED'],
  ])('%j: %s', async (given, expected) => {
    expect(await told(await signed(), { acme: given })).toBe(expected);
  });
  test('a limit that cannot be read is an error, not no limit', async () => {
    await expect(told(await signed(), { acme: key({ expires: 'soon' }) })).rejects.toThrow(/no moment/);
  });
});

test('another curator, another key, a name of the prototype: none of them', async () => {
  expect(await told(await signed(), { other: publicKey })).toBe('UNKNOWN_CURATOR');
  expect(await told(await signed({ keyId: 'x' }), { acme: publicKey })).toBe('UNKNOWN_KEY');
  expect(await told(await signed({ curatorId: 'constructor' }), {})).toBe('UNKNOWN_CURATOR');
});

test('several keys of a curator are tried', async () => {
  const other = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).publicKey;
  expect(await told(await signed(), { acme: { keys: [other, publicKey] } })).toBe('verified');
  expect(await told(await signed(), { acme: [other] })).toBe('BAD_SIGNATURE');
});

test('a signature of the tools alone says nothing of the rest', async () => {
  const { packageHash: _, packageSignature: __, ...half } = await signed();
  expect(await told({ ...half, permissions: ['storage'] }, { acme: publicKey })).toBe('tools-only');
});

test('an RSA key that is too short is refused', async () => {
  const { publicKey: short } = generateKeyPairSync('rsa', {
    modulusLength: 1024,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  await expect(told(await signed(), { acme: short })).rejects.toThrow(/1024 bits/);
});

test.each(['', 'x', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'])(
  'what is no key is an error: %j',
  async (pem) => {
    await expect(told(await signed(), { acme: pem })).rejects.toMatchObject({ code: 'KEY_INVALID' });
  },
);

test.each([
  ['/id', { id: 'Clock' }],
  ['/version', { version: '1' }],
  ['/extra', { extra: 1 }],
  ['/tools', { tools: [] }],
  ['/tools/0/executorCode', { tools: [{ name: 'a', description: 'A.' }] }],
  ['/tools/1/name', { tools: [draft.tools[0], { ...draft.tools[0], name: 'NOW' }] }],
  ['/permissions/0', { permissions: ['root'] }],
  ['/dependencies/x', { dependencies: { x: 1 } }],
  ['/signature', { signature: 'AAAA' }],
  ['/tools/0/parameters/x', { tools: [{ ...draft.tools[0], parameters: { type: 'object', x: 2 ** 53 } }] }],
])('what is no package is refused at %s', async (pointer, change) => {
  await expect(verifyPackage({ ...draft, ...change }, {})).rejects.toMatchObject({ pointer });
});
