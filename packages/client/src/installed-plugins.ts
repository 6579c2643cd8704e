import type { Connection } from './connection.js';
import type { CallOptions } from './resources.js';
import type { PluginList, PluginReview, RevokePlugin } from './wire.js';

/** A package document, or the address of one. */
export type PluginPackageSource = Record<string, unknown> | { readonly url: string };

/** Plugins that are installed in the gateway; needs a secret key or a session. */
export class InstalledPlugins {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The installed plugins, without their code. */
  list(options: CallOptions = {}): Promise<PluginList> {
    return this.#connection.json('/v1/plugins', options);
  }

  /** What installing a package would do: signature, permissions, changes, problems. Changes nothing. */
  review(source: PluginPackageSource, options: CallOptions = {}): Promise<PluginReview> {
    return this.#connection.json('/v1/plugins', {
      ...options,
      method: 'POST',
      query: { dryRun: true },
      body: source,
      safe: true,
    });
  }

  /** Installs a plugin, or replaces its current version. */
  install(source: PluginPackageSource, options: CallOptions = {}): Promise<PluginReview> {
    return this.#connection.json('/v1/plugins', { ...options, method: 'POST', body: source, safe: true });
  }

  /** A stored package with its code, by the plugin's id or a hash. */
  package(idOrHash: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#connection.json(this.#path(idOrHash), options);
  }

  /** Goes back to an earlier package: the previous one, or the one with this hash. */
  rollBack(plugin: string, packageHash?: string, options: CallOptions = {}): Promise<PluginList> {
    const body = packageHash === undefined ? {} : { packageHash };
    return this.#connection.json(`${this.#path(plugin)}/rollback`, { ...options, method: 'POST', body });
  }

  /** Stops packages for good. Calls under way are cut off. */
  revoke(what: RevokePlugin, options: CallOptions = {}): Promise<PluginList> {
    return this.#connection.json('/v1/plugins/revoke', {
      ...options,
      method: 'POST',
      body: what,
      safe: true,
    });
  }

  /** Removes a plugin, unless others need it. */
  remove(plugin: string, options: CallOptions = {}): Promise<void> {
    return this.#connection.json(this.#path(plugin), { ...options, method: 'DELETE', safe: true });
  }

  #path(plugin: string): string {
    return `/v1/plugins/${encodeURIComponent(plugin)}`;
  }
}
