import { PackageError } from './error.js';
import { contentHash, packageHash } from './hash.js';
import { type PublicKey, readBase64, readPublicKey } from './key.js';
import { type ReadPackage, readPackage } from './read-package.js';

/** One key of a curator: its PEM text, or that with an id and limits. */
export type CuratorKey =
  | string
  | {
      /** Unique among the curator's keys; the key's fingerprint by default. */
      id?: string;
      /** The key in PEM (SPKI, `BEGIN PUBLIC KEY`). */
      publicKey: string;
      /** RFC 3339: time from which on it counts. */
      notBefore?: string;
      /** RFC 3339: time from which on it no longer counts. */
      expires?: string;
      /** It no longer counts, and never did: somebody else may have it. */
      revoked?: boolean;
    };

/** The keys of the curators that are trusted, by curator. A curator has several while one replaces another. */
export type Curators = Record<string, CuratorKey | CuratorKey[] | { keys: CuratorKey[] }>;

/** Why a claim of a document does not hold. */
export type RejectionCode =
  | 'CONTENT_CHANGED'
  | 'PACKAGE_CHANGED'
  | 'UNKNOWN_CURATOR'
  | 'UNKNOWN_KEY'
  | 'KEY_REVOKED'
  | 'KEY_NOT_YET_VALID'
  | 'KEY_EXPIRED'
  | 'BAD_SIGNATURE';

/** What a package's signatures say. */
export type Verification =
  /** Nobody vouches for it. */
  | { state: 'unsigned' }
  /** A curator vouches for the tools and their code, and for nothing else. */
  | { state: 'tools-only'; curator: string; key: string }
  /** A curator vouches for the whole document. */
  | { state: 'verified'; curator: string; key: string }
  /** It claims a hash or a signature that does not hold. */
  | { state: 'rejected'; code: RejectionCode; reason: string };

/** What stands before the package hash in the text that is signed. */
const PACKAGE_SIGNATURE_PREFIX = 'toolgate-plugin-v1:';

interface NamedKey {
  id: string;
  key: PublicKey;
  notBefore?: number;
  expires?: number;
  revoked: boolean;
}

/** Verifies every hash and signature that a document claims, with the keys that count at the time `now`. */
export async function verifyPackage(
  document: unknown,
  curators: Curators,
  options: { now?: Date } = {},
): Promise<Verification> {
  const read = readPackage(document);
  try {
    return await verifyClaims(read, curators, (options.now ?? new Date()).getTime());
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    return { state: 'rejected', code: error.code, reason: error.message };
  }
}

class Rejected extends Error {
  readonly code: RejectionCode;
  constructor(code: RejectionCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

async function verifyClaims(document: ReadPackage, curators: Curators, now: number): Promise<Verification> {
  const content = await contentHash(document);
  if (document.contentHash !== undefined && document.contentHash !== content) {
    const reason = `the tools were changed: contentHash is ${document.contentHash}, but they hash to ${content}`;
    throw new Rejected('CONTENT_CHANGED', reason);
  }
  const whole = await packageHash(document);
  if (document.packageHash !== undefined && document.packageHash !== whole) {
    const reason = `the package was changed: packageHash is ${document.packageHash}, but it hashes to ${whole}`;
    throw new Rejected('PACKAGE_CHANGED', reason);
  }
  const { curatorId: curator, signature, packageSignature } = document;
  if (signature === undefined || curator === undefined) return { state: 'unsigned' };
  const signer = await signerOf(content, signature, await keysInForce(document, curator, curators, now));
  if (!signer) throw new Rejected('BAD_SIGNATURE', `signature was not made by a key of ${curator}`);
  if (packageSignature === undefined) return { state: 'tools-only', curator, key: signer.id };
  // By the same key: two signatures of different keys are no document that anybody has signed.
  if (!(await holds(signer.key, PACKAGE_SIGNATURE_PREFIX + whole, packageSignature))) {
    throw new Rejected('BAD_SIGNATURE', `packageSignature was not made by a key of ${curator}`);
  }
  return { state: 'verified', curator, key: signer.id };
}

async function signerOf(message: string, signature: string, keys: NamedKey[]): Promise<NamedKey | undefined> {
  for (const candidate of keys) {
    if (await holds(candidate.key, message, signature)) return candidate;
  }
  return undefined;
}

async function holds(key: PublicKey, message: string, signature: string): Promise<boolean> {
  const bytes = readBase64(signature);
  return bytes !== undefined && (await key.verifies(message, bytes));
}

/** The keys that may have signed: the one that the document names, or all that count. */
async function keysInForce(
  { keyId }: ReadPackage,
  curator: string,
  curators: Curators,
  now: number,
): Promise<NamedKey[]> {
  const written = Object.hasOwn(curators, curator) ? curators[curator] : undefined;
  if (written === undefined) {
    throw new Rejected(
      'UNKNOWN_CURATOR',
      `the curator ${curator} is not trusted here: no key of theirs is configured`,
    );
  }
  const keys = await Promise.all(listed(written).map(readKey));
  const named = keys.filter(({ id }) => keyId === undefined || id === keyId);
  const inForce = named.filter((key) => notInForce(key, now) === undefined);
  if (inForce.length > 0) return inForce;
  const last = named.at(-1);
  const why = last && notInForce(last, now);
  if (why) throw new Rejected(why[0], `the key ${last.id} of ${curator} ${why[1]}`);
  throw new Rejected('UNKNOWN_KEY', `the curator ${curator} has no key with the id ${keyId}`);
}

function listed(written: Curators[string]): CuratorKey[] {
  if (Array.isArray(written)) return written;
  return typeof written === 'object' && 'keys' in written ? written.keys : [written];
}

async function readKey(written: CuratorKey): Promise<NamedKey> {
  const given = typeof written === 'string' ? { publicKey: written } : written;
  const key = await readPublicKey(given.publicKey);
  const notBefore = moment(given.notBefore);
  const expires = moment(given.expires);
  return {
    id: given.id ?? key.fingerprint,
    key,
    ...(notBefore === undefined ? {} : { notBefore }),
    ...(expires === undefined ? {} : { expires }),
    revoked: given.revoked ?? false,
  };
}

function moment(written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const time = Date.parse(written);
  // A limit that cannot be read must not turn into no limit.
  if (Number.isNaN(time)) throw new PackageError('KEY_INVALID', `"${written}" is no moment in RFC 3339`);
  return time;
}

function notInForce(
  { revoked, notBefore, expires }: NamedKey,
  now: number,
): [RejectionCode, string] | undefined {
  if (revoked) return ['KEY_REVOKED', 'was revoked'];
  if (notBefore !== undefined && now < notBefore) {
    return ['KEY_NOT_YET_VALID', `counts from ${new Date(notBefore).toISOString()} on`];
  }
  if (expires !== undefined && now >= expires) {
    return ['KEY_EXPIRED', `expired at ${new Date(expires).toISOString()}`];
  }
  return undefined;
}
