import {
  type Curators,
  PackageError,
  type PackageTool,
  type ReadPackage,
  readPackage,
  type Verification,
  verifyPackage,
} from '@toolgate/plugin';
import { CODES, PluginError } from '../error.js';
import type { JsonSchema } from '../json-schema.js';
import type { ToolgatePlugin } from '../plugin.js';
import type { ClientToolDefinition, ToolExecutor } from '../tool.js';

/** Key-value storage for a package that asks for it. */
export interface PackageStorage {
  get(key: string): Promise<unknown>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
  list(prefix?: string): Promise<string[]>;
}

/** Options of `loadPackage`. */
export interface LoadPackageOptions {
  /** Public keys (PEM) of the curators whose packages may run here, by curator. */
  curators?: Curators;
  /**
   * `production` (the default) loads only packages whose whole document was signed by one of `curators`.
   * `development` also loads unsigned ones. A signature that does not hold is refused in both.
   */
  mode?: 'production' | 'development';
  /** Loads packages of which only the tools are signed, if they ask for no permissions; not by default. */
  toolsOnlySignatures?: boolean;
  /** Given to the code of a package that asks for `storage`; such a package is refused without it. */
  storage?: PackageStorage;
  /** The time by which the keys must be valid; now by default. */
  now?: Date;
}

/** A plugin made from a package, with what its signatures say. */
export interface PackagePlugin extends ToolgatePlugin {
  verification: Verification;
}

/**
 * Reads a plugin package (its JSON text, or the value), verifies its signatures, and gives a plugin for
 * `client.use`. Throws a `PluginError` if it may not run here.
 *
 * The code runs in this process **without a sandbox**: it can do whatever the page or the program can. Load
 * what a curator you trust has signed, and nothing else. The gateway runs packages in a sandbox.
 */
export async function loadPackage(
  document: unknown,
  options: LoadPackageOptions = {},
): Promise<PackagePlugin> {
  const read = within(() => readPackage(document));
  const verification = await verifyPackage(read, options.curators ?? {}, {
    ...(options.now && { now: options.now }),
  }).catch((error: unknown) => {
    throw asPluginError(error);
  });
  refuseUntrusted(read, verification, options);
  const { storage } = options;
  if (read.permissions?.includes('storage') && !storage) {
    refuse(`package "${read.id}" asks for storage, pass "storage" in the options to give it some`);
  }
  return {
    name: read.id,
    version: read.version,
    tools: read.tools.map(definitionOf),
    executors: Object.fromEntries(
      read.tools.map((tool) => [tool.name, executorOf(read.id, tool, storage)] as const),
    ),
    ...(read.dependencies && { dependencies: rangesOf(read.dependencies) }),
    ...(read.engine === undefined ? {} : { engine: rangeOf(read.engine) }),
    verification,
  };
}

function refuseUntrusted(read: ReadPackage, verification: Verification, options: LoadPackageOptions): void {
  const { mode = 'production', toolsOnlySignatures = false } = options;
  switch (verification.state) {
    case 'verified':
      return;
    case 'rejected':
      refuse(`package "${read.id}" is refused (${verification.code}): ${verification.reason}`);
      break;
    case 'unsigned':
      if (mode === 'development') return;
      refuse(`package "${read.id}" is not signed; only mode "development" loads it`);
      break;
    case 'tools-only':
      if (mode === 'development' || (toolsOnlySignatures && !read.permissions?.length)) return;
      refuse(
        `only the tools of package "${read.id}" are signed, not its id, version and permissions; ask ` +
          `${verification.curator} to sign the whole of it, or allow "toolsOnlySignatures" for packages ` +
          'without permissions',
      );
  }
}

/** What the gateway takes of a definition from a client. */
function definitionOf(tool: PackageTool): ClientToolDefinition {
  const { name, description, parameters, outputSchema, timeout } = tool;
  return {
    name,
    description,
    parameters: (parameters ?? { type: 'object' }) as JsonSchema,
    ...(typeof outputSchema === 'object' ? { outputSchema: outputSchema as JsonSchema } : {}),
    // In a package, as in all configuration of the gateway, a number is seconds.
    ...(timeout === undefined ? {} : { timeout: typeof timeout === 'number' ? timeout * 1000 : timeout }),
  };
}

function executorOf(id: string, tool: PackageTool, storage: PackageStorage | undefined): ToolExecutor {
  try {
    // The line end keeps a comment on the last line from swallowing the rest.
    const run = new Function('args', 'storage', `return (async () => {${tool.executorCode}\n})();`);
    return (args) => run(args, storage) as Promise<unknown>;
  } catch (cause) {
    const message = `package "${id}": the code of "${tool.name}" cannot be compiled: ${(cause as Error).message}`;
    throw new PluginError(CODES.pluginInvalid, message, { cause });
  }
}

function rangesOf(dependencies: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(dependencies).map(([id, range]) => [id, rangeOf(range)]));
}

/** A package's range (`1.2` means `^1.2`, and a comma "and") in the words of this client. */
function rangeOf(range: string): string {
  const comparators = range.split(',').map((part) => part.trim());
  return comparators.map((part) => (/^\d+(\.\d+){0,2}$/.test(part) ? `^${part}` : part)).join(' ');
}

function within<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw asPluginError(error);
  }
}

function asPluginError(error: unknown): unknown {
  if (!(error instanceof PackageError)) return error;
  return new PluginError(CODES.pluginInvalid, error.message, {
    errors: [{ pointer: error.pointer, message: error.message }],
    cause: error,
  });
}

function refuse(message: string): never {
  throw new PluginError(CODES.pluginUntrusted, message);
}
