import { ToolgateClient, type ToolgateClientOptions } from './client.js';
import type { ToolRegistry } from './tool-registry.js';

/** The registry of a gateway's project, for programs that begin with one; the same as `client.registry`. */
export function initializeToolRegistry(gateway: ToolgateClient | ToolgateClientOptions): ToolRegistry {
  return (gateway instanceof ToolgateClient ? gateway : new ToolgateClient(gateway)).registry;
}
