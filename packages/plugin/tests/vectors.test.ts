import { createHash, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canonicalJson, contentHash, packageHash, readPublicKey, verifyPackage } from '../src/index.js';

// The vectors are the Rust crate's: whatever it computes must come out here too, by other means.
function vectors<T>(name: string): T {
  const file = new URL(`../../../crates/package/vectors/${name}`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}

type Document = Record<string, unknown> & { tools: Array<Record<string, unknown>> };
type Algorithm = 'ed25519' | 'rsa';
const ALGORITHMS: Algorithm[] = ['ed25519', 'rsa'];

interface PackageVector {
  name: string;
  document: Document;
  canonicalTools: string;
  contentHash: string;
  canonicalPackage: string;
  packageHash: string;
  signed: Record<Algorithm, Document & Record<'signature' | 'packageSignature' | 'packageHash', string>>;
}

const keys = vectors<Record<Algorithm, { id: string; privateKey: string; publicKey: string }>>('keys.json');
const packages = vectors<PackageVector[]>('packages.json');
const tampered = vectors<{
  package: string;
  now: string;
  forgeries: Array<{
    signedBy: Algorithm;
    change: { pointer: string; value: unknown };
    hashes: 'kept' | 'anew';
    code: string;
  }>;
}>('tampered.json');
const canonical = vectors<{
  accepted: Array<{ name: string; json: string; canonical: string }>;
  refused: Array<{ name: string; json: string }>;
}>('canonical.json');

const curators = { 'test-curator': ALGORITHMS.map((name) => keys[name].publicKey) };
const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');
const digestOf = { ed25519: null, rsa: 'sha256' };

describe('canonical JSON', () => {
  test.each(canonical.accepted)('$name', ({ json, canonical: expected }) => {
    expect(canonicalJson(JSON.parse(json))).toBe(expected);
    expect(canonicalJson(JSON.parse(expected))).toBe(expected);
  });
  test.each(canonical.refused)('$name has none', ({ json }) => {
    expect(() => canonicalJson(JSON.parse(json))).toThrow();
  });
});

describe.each(ALGORITHMS)('the key %s', (name) => {
  test('has its fingerprint', async () => {
    expect((await readPublicKey(keys[name].publicKey)).fingerprint).toBe(keys[name].id);
  });
  test('is a pair', () => {
    const made = createPublicKey(createPrivateKey(keys[name].privateKey)).export({
      type: 'spki',
      format: 'pem',
    });
    expect(made).toBe(keys[name].publicKey);
  });
});

describe.each(packages)('the package "$name"', (vector) => {
  test('has its canonical texts and hashes', async () => {
    expect(canonicalJson(vector.document.tools)).toBe(vector.canonicalTools);
    expect(sha256(vector.canonicalTools)).toBe(vector.contentHash);
    expect(canonicalJson(vector.document)).toBe(vector.canonicalPackage);
    expect(sha256(vector.canonicalPackage)).toBe(vector.packageHash);
    expect(await contentHash(vector.document)).toBe(vector.contentHash);
    expect(await packageHash(vector.document)).toBe(vector.packageHash);
    expect(await verifyPackage(vector.document, curators)).toEqual({ state: 'unsigned' });
  });

  test.each(ALGORITHMS)('has its signatures by %s, made and verified with the crypto of Node', (name) => {
    const { signature, packageHash: hash, packageSignature } = vector.signed[name];
    const messages = { [vector.contentHash]: signature, [`toolgate-plugin-v1:${hash}`]: packageSignature };
    for (const [message, expected] of Object.entries(messages)) {
      const bytes = Buffer.from(message, 'utf8');
      expect(sign(digestOf[name], bytes, keys[name].privateKey).toString('base64')).toBe(expected);
      expect(verify(digestOf[name], bytes, keys[name].publicKey, Buffer.from(expected, 'base64'))).toBe(true);
    }
  });

  test.each(ALGORITHMS)(
    'signed by %s is verified, and its hash covers everything but the signatures',
    async (name) => {
      const signed = vector.signed[name];
      expect(await verifyPackage(JSON.stringify(signed), curators)).toEqual({
        state: 'verified',
        curator: 'test-curator',
        key: keys[name].id,
      });
      const { packageHash: hash, signature: _, packageSignature: __, ...covered } = signed;
      expect(sha256(canonicalJson(covered))).toBe(hash);
    },
  );
});

describe('tampered packages', () => {
  const original = packages.find(({ name }) => name === tampered.package);
  const changed = ({ signedBy, change, hashes }: (typeof tampered.forgeries)[number]): Document => {
    const document = structuredClone(original?.signed[signedBy]) as Document;
    const steps = change.pointer.split('/').slice(1);
    const last = steps.pop() as string;
    const parent = steps.reduce<Record<string, unknown>>((at, step) => at[step] as never, document);
    parent[last] = change.value;
    if (hashes === 'anew') {
      document.contentHash = sha256(canonicalJson(document.tools));
      const { packageHash: _, signature: __, packageSignature: ___, ...covered } = document;
      document.packageHash = sha256(canonicalJson(covered));
    }
    return document;
  };

  test.each(tampered.forgeries)('$change.pointer by $signedBy, hashes $hashes: $code', async (forgery) => {
    const now = new Date(tampered.now);
    expect(await verifyPackage(changed(forgery), curators, { now })).toMatchObject({
      state: 'rejected',
      code: forgery.code,
    });
  });

  test('every part that must be covered is among them', () => {
    const changes = tampered.forgeries.map(({ change }) => change.pointer);
    for (const part of [
      '/id',
      '/version',
      '/permissions',
      '/dependencies',
      '/engine',
      '/tools/0/executorCode',
    ]) {
      expect(changes).toContain(part);
    }
    expect(changes.some((pointer) => pointer.startsWith('/tools/0/parameters'))).toBe(true);
  });
});

describe('points of small order', () => {
  const weak = vectors<{
    keys: Array<{ name: string; publicKey: string }>;
    signatures: Array<{ name: string; key: Algorithm; message: string; signature: string }>;
  }>('weak.json');
  test.each(weak.keys)('are no key: $name', async ({ publicKey }) => {
    await expect(readPublicKey(publicKey)).rejects.toThrow(/small order/);
  });
  test.each(weak.signatures)('are no half of a signature: $name', async ({ key, message, signature }) => {
    const bytes = Uint8Array.from(Buffer.from(signature, 'base64'));
    expect(await (await readPublicKey(keys[key].publicKey)).verifies(message, bytes)).toBe(false);
  });
});
