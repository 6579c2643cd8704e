import { AbortedError, CODES, PluginError } from './error.js';
import type { PluginHooks, ToolgatePlugin } from './plugin.js';

/** Calls a hook of a plugin. What it throws becomes a `PluginError` that names the plugin and the hook. */
export async function callHook<T>(
  plugin: ToolgatePlugin,
  hook: keyof PluginHooks,
  call: (hooks: PluginHooks) => T,
): Promise<Awaited<T> | undefined> {
  try {
    return await (plugin.hooks && call(plugin.hooks));
  } catch (cause) {
    // Not a failure: the hook was told to stop, and did.
    if (cause instanceof AbortedError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError(CODES.pluginFailed, `plugin "${plugin.name}": its hook ${hook} failed: ${reason}`, {
      cause,
    });
  }
}

/** Throws what was thrown, if anything was: alone, or several errors together. */
export function throwAll(failures: readonly unknown[]): void {
  if (failures.length === 0) return;
  if (failures.length === 1) throw failures[0];
  const words = failures.map((failure) => (failure instanceof Error ? failure.message : String(failure)));
  throw new PluginError(CODES.pluginFailed, words.join('; '), { cause: new AggregateError(failures) });
}
