import type { ClientToolDefinition } from './tool.js';

/** A definition as the gateway reads it: there a number without a unit is seconds. */
export function wireDefinition(definition: ClientToolDefinition): ClientToolDefinition {
  const { timeout } = definition;
  return typeof timeout === 'number' ? { ...definition, timeout: `${timeout}ms` } : definition;
}
