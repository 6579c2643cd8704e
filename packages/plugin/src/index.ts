export { canonicalJson } from './canonical.js';
export { definePlugin, type PluginSource, type PluginTool } from './define-plugin.js';
export { PackageError } from './error.js';
export { contentHash, packageHash } from './hash.js';
export { type Algorithm, type PublicKey, readPublicKey } from './key.js';
export type * from './package.js';
export { type ReadPackage, readPackage } from './read-package.js';
export {
  type CuratorKey,
  type Curators,
  type RejectionCode,
  type Verification,
  verifyPackage,
} from './verify.js';
