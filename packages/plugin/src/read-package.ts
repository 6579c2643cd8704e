import { canonicalJson } from './canonical.js';
import { PackageError } from './error.js';
import type { PluginPackage, SignedPackage } from './package.js';

/** A document that was read: what an author wrote, and what a curator may have added. */
export type ReadPackage = PluginPackage & Partial<SignedPackage>;

const DOCUMENT_BYTES_MAX = 1 << 20;
const CODE_BYTES_MAX = 256 << 10;
const TOOLS_MAX = 64;

const MEMBERS = new Set([
  '$schema',
  'id',
  'name',
  'version',
  'description',
  'tools',
  'permissions',
  'dependencies',
  'engine',
  'contentHash',
  'signature',
  'packageHash',
  'packageSignature',
  'curatorId',
  'keyId',
  'sourceUrl',
]);

/**
 * Reads a package from its text or its value. Throws a `PackageError` with the first problem. The full rules
 * (`toolgate plugin verify` lists every problem) are the gateway's; this checks what loading relies on.
 */
export function readPackage(document: unknown): ReadPackage {
  const value: unknown = typeof document === 'string' ? parse(document) : document;
  if (!isObject(value)) return refuse('', 'a package is an object');
  // A copy: whoever gave the value cannot change it between the check and its use.
  const { installedAt: _, ...members } = JSON.parse(canonicalJson(value)) as Record<string, unknown>;
  if (bytes(canonicalJson(members)) > DOCUMENT_BYTES_MAX) {
    refuse('', `a package has at most ${DOCUMENT_BYTES_MAX} bytes`);
  }
  for (const name of Object.keys(members)) {
    if (!MEMBERS.has(name)) refuse(`/${name}`, 'unknown member');
  }
  const text = (name: string, form: RegExp, words: string, needed = false): void => {
    const member = members[name];
    if (member === undefined && !needed) return;
    if (typeof member !== 'string' || !form.test(member)) refuse(`/${name}`, `expected ${words}`);
  };
  text('id', /^[a-z0-9][a-z0-9-]{0,63}$/, 'an id such as "unit-converter"', true);
  text('name', /\S/, 'a name', true);
  text('version', /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/, 'a version such as "1.2.0"', true);
  text('engine', /^[0-9A-Za-z<>=~^*.,+ -]+$/, 'a version range such as ">=0.1"');
  for (const name of ['contentHash', 'packageHash']) text(name, /^[0-9a-f]{64}$/, 'a SHA-256 hash in hex');
  for (const name of ['signature', 'packageSignature']) text(name, /^[A-Za-z0-9+/]+={0,2}$/, 'base64');
  for (const name of ['curatorId', 'keyId']) text(name, /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/, 'an id');
  refuseHalfSigned(members);
  refuseTools(members.tools);
  refusePermissions(members.permissions);
  refuseDependencies(members.dependencies);
  return members as unknown as ReadPackage;
}

function parse(text: string): unknown {
  if (bytes(text) > DOCUMENT_BYTES_MAX) refuse('', `a package has at most ${DOCUMENT_BYTES_MAX} bytes`);
  try {
    return JSON.parse(text);
  } catch (error) {
    return refuse('', `is not JSON: ${(error as Error).message}`);
  }
}

function refuseHalfSigned(members: Record<string, unknown>): void {
  const needs = {
    signature: ['contentHash', 'curatorId'],
    packageSignature: ['packageHash', 'signature', 'contentHash', 'curatorId'],
  };
  for (const [name, others] of Object.entries(needs)) {
    const missing = others.filter((other) => members[other] === undefined);
    if (members[name] !== undefined && missing.length > 0)
      refuse(`/${name}`, `needs ${missing.join(', ')} too`);
  }
}

function refuseTools(tools: unknown): void {
  if (!Array.isArray(tools) || tools.length === 0 || tools.length > TOOLS_MAX) {
    refuse('/tools', `expected 1 to ${TOOLS_MAX} tools`);
  }
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    const place = `/tools/${index}`;
    if (!isObject(tool)) refuse(place, 'a tool is an object');
    const { name, executorCode } = tool;
    if (typeof name !== 'string' || !/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name)) {
      refuse(`${place}/name`, 'expected a name such as "search_orders"');
    }
    if (names.has(name.toLowerCase())) refuse(`${place}/name`, `two tools are named "${name}"`);
    names.add(name.toLowerCase());
    if (
      typeof executorCode !== 'string' ||
      executorCode.trim() === '' ||
      bytes(executorCode) > CODE_BYTES_MAX
    ) {
      refuse(`${place}/executorCode`, `expected the body of a function, at most ${CODE_BYTES_MAX} bytes`);
    }
  }
}

function refusePermissions(permissions: unknown): void {
  if (permissions === undefined) return;
  if (!Array.isArray(permissions)) refuse('/permissions', 'expected a list');
  for (const [index, permission] of permissions.entries()) {
    if (permission !== 'storage' && !(typeof permission === 'string' && permission.startsWith('fetch:'))) {
      refuse(`/permissions/${index}`, 'expected "storage" or "fetch:HOST"');
    }
  }
}

function refuseDependencies(dependencies: unknown): void {
  if (dependencies === undefined) return;
  if (!isObject(dependencies)) refuse('/dependencies', 'expected an object of version ranges');
  for (const [id, range] of Object.entries(dependencies)) {
    if (typeof range !== 'string') refuse(`/dependencies/${id}`, 'expected a version range such as "^1.0"');
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

function refuse(pointer: string, message: string): never {
  throw new PackageError('PACKAGE_INVALID', message, pointer);
}
