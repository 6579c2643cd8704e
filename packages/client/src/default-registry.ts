import { ToolgateClient, type ToolgateClientOptions } from './client.js';
import { CODES, ValidationError } from './error.js';
import type { ToolRegistry } from './tool-registry.js';

/** The registry of `ToolRegistry.getInstance`, one per process or page. */
let registry: ToolRegistry | undefined;

/**
 * The default registry, which is made from the environment if nobody has named a gateway yet. Throws a `ValidationError` that
 * says what to give where there is no environment or it names no gateway.
 */
export function defaultRegistry(): ToolRegistry {
  registry ??= new ToolgateClient(optionsOfEnvironment()).registry;
  return registry;
}

/**
 * The registry of a gateway's project, for programs that begin with one; the same as `client.registry`. It is the default from
 * then on, which `ToolRegistry.getInstance()` returns. Without a gateway it is the one that is the default already, or that of
 * the gateway which `TOOLGATE_URL` and `TOOLGATE_SECRET_KEY` name in the environment.
 */
export function initializeToolRegistry(gateway?: ToolgateClient | ToolgateClientOptions): ToolRegistry {
  if (gateway === undefined) return defaultRegistry();
  registry = (gateway instanceof ToolgateClient ? gateway : new ToolgateClient(gateway)).registry;
  return registry;
}

const NAMES = { url: 'TOOLGATE_URL', key: 'TOOLGATE_SECRET_KEY' } as const;

function optionsOfEnvironment(): { url: string; key: string } {
  // Browsers have no `process`, and naming it bare throws there.
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  const url = process?.env?.[NAMES.url];
  const key = process?.env?.[NAMES.key];
  if (url && key) return { url, key };
  const missing = [url ? '' : NAMES.url, key ? '' : NAMES.key].filter((name) => name !== '').join(' and ');
  const words =
    process?.env === undefined
      ? 'there is no environment here that names a gateway, call initializeToolRegistry({ url, publicKey, token }) first'
      : `no gateway is named, set ${missing} in the environment or call initializeToolRegistry({ url, key }) first`;
  throw new ValidationError(CODES.validation, words);
}
