import { sha256Bytes } from './bytes.js';
import { PackageError } from './error.js';
import { isSmallOrder } from './small-order.js';

/** A signature algorithm. */
export type Algorithm = 'Ed25519' | 'RSASSA-PKCS1-v1_5';

/** A public key, ready to verify. */
export interface PublicKey {
  algorithm: Algorithm;
  /** The first 16 characters of the SHA-256 of the key (SPKI) in hex. */
  fingerprint: string;
  verifies(message: string, signature: Uint8Array<ArrayBuffer>): Promise<boolean>;
}

/** What DER puts before the 32 bytes of an Ed25519 public key. */
const ED25519 = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/** The object identifier `rsaEncryption` in DER. */
const RSA = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const RSA_BITS_MIN = 2048;
const RSA_BITS_MAX = 8192;

/** Reads a public key in PEM (SPKI, `BEGIN PUBLIC KEY`): Ed25519, or RSA of 2048 to 8192 bits. */
export async function readPublicKey(pem: string): Promise<PublicKey> {
  const spki = readPem(pem);
  const algorithm = algorithmOf(spki);
  if (algorithm === 'Ed25519' && isSmallOrder(spki.subarray(ED25519.length))) {
    refuse('this Ed25519 key is of small order: signatures by it prove nothing');
  }
  const key = await importKey(spki, algorithm);
  return {
    algorithm,
    fingerprint: (await sha256Bytes(spki)).slice(0, 16),
    // Strict, as the gateway is: not every engine refuses a point of small order, by which one signature fits several
    // messages.
    verifies: async (message, signature) =>
      !(algorithm === 'Ed25519' && isSmallOrder(signature.subarray(0, 32))) &&
      (await crypto.subtle.verify(algorithm, key, signature, new TextEncoder().encode(message))),
  };
}

function refuse(message: string): never {
  throw new PackageError('KEY_INVALID', message);
}

function readPem(pem: string): Uint8Array<ArrayBuffer> {
  const match = /^\s*-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*$/.exec(pem);
  if (!match?.[1]) refuse('expected a PEM text that begins with "-----BEGIN PUBLIC KEY-----"');
  return readBase64(match[1].replace(/\s/g, '')) ?? refuse('the PEM text of the key is damaged');
}

/** The bytes of a text in base64 with its padding; `undefined` if it is none. */
export function readBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return undefined;
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function algorithmOf(spki: Uint8Array): Algorithm {
  if (spki.length === ED25519.length + 32 && ED25519.every((byte, index) => spki[index] === byte)) {
    return 'Ed25519';
  }
  const head = Array.from(spki.subarray(0, 32)).join(',');
  if (head.includes(RSA.join(','))) return 'RSASSA-PKCS1-v1_5';
  return refuse('expected an Ed25519 key or an RSA key');
}

async function importKey(spki: Uint8Array<ArrayBuffer>, algorithm: Algorithm): Promise<CryptoKey> {
  const parameters = algorithm === 'Ed25519' ? algorithm : { name: algorithm, hash: 'SHA-256' };
  const key = await crypto.subtle
    .importKey('spki', spki, parameters, false, ['verify'])
    .catch((): never => refuse(`this ${algorithm} key is damaged, or not supported here`));
  const bits = (key.algorithm as { modulusLength?: number }).modulusLength;
  if (bits !== undefined && (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX)) {
    refuse(`an RSA key of ${bits} bits is not accepted, use one of 2048 to 8192 bits, or an Ed25519 key`);
  }
  return key;
}
