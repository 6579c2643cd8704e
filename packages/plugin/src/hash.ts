import { sha256Bytes } from './bytes.js';
import { canonicalJson } from './canonical.js';

/** Members that the package hash leaves out: the signatures themselves, and where a copy was found. */
const UNSIGNED_MEMBERS = ['packageHash', 'signature', 'packageSignature', 'sourceUrl', 'installedAt'];

/** SHA-256 of the canonical JSON of a package's `tools`, in hex. */
export function contentHash(document: { tools: unknown }): Promise<string> {
  return sha256(canonicalJson(document.tools));
}

/** SHA-256 of the canonical JSON of a document without its signatures, in hex: the package's address. */
export function packageHash(document: object): Promise<string> {
  const covered = Object.entries(document).filter(([name]) => !UNSIGNED_MEMBERS.includes(name));
  return sha256(canonicalJson(Object.fromEntries(covered)));
}

function sha256(text: string): Promise<string> {
  return sha256Bytes(new TextEncoder().encode(text));
}
