/**
 * The globals of the sandbox, for editors and `tsc`: name `@toolgate/plugin/sandbox` in `types` of a
 * tsconfig.json that has no `DOM` in `lib`. The language itself (`Date`, `Math`, `Promise`, `Intl`, …) comes
 * with `lib`. There are no modules, no files, no environment.
 */

/** Key-value storage of the plugin in its project. Needs the permission `storage`. */
declare const storage: {
  /** The value, or `undefined` if there is none. */
  get(key: string): Promise<unknown>;
  /** Stores a JSON value. Rejects when the plugin's quota is used up. */
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
  /** The keys that begin with `prefix`, all by default. */
  list(prefix?: string): Promise<string[]>;
};

/**
 * Sends a request through the gateway. Needs the permission `fetch:HOST`; addresses inside the operator's
 * network are refused whatever the permissions say.
 */
declare function fetch(
  url: string | URL,
  init?: {
    method?: string;
    headers?: Headers | Record<string, string> | Iterable<readonly [string, string]>;
    body?: string | ArrayBuffer | ArrayBufferView | URLSearchParams | null;
    signal?: AbortSignal;
  },
): Promise<Response>;

declare class Headers {
  constructor(init?: Record<string, string> | Iterable<readonly [string, string]>);
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  get(name: string): string | null;
  has(name: string): boolean;
  delete(name: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

declare class Response {
  readonly status: number;
  readonly statusText: string;
  readonly ok: boolean;
  readonly url: string;
  readonly redirected: boolean;
  readonly headers: Headers;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: as in every browser.
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  clone(): Response;
}

/** Goes to the run's log, which operators read; never to users or the model. */
declare const console: Record<
  'log' | 'info' | 'debug' | 'trace' | 'warn' | 'error',
  (...values: unknown[]) => void
>;

declare const crypto: {
  randomUUID(): string;
  getRandomValues<T extends ArrayBufferView>(array: T): T;
};

declare class URLSearchParams {
  constructor(init?: string | Record<string, string> | Iterable<readonly [string, string]>);
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  delete(name: string): void;
  sort(): void;
  toString(): string;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

declare class TextEncoder {
  encode(text?: string): Uint8Array;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes?: ArrayBuffer | ArrayBufferView): string;
}

declare class AbortSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
  throwIfAborted(): void;
  static timeout(milliseconds: number): AbortSignal;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

declare function setTimeout(
  callback: (...args: never[]) => void,
  milliseconds?: number,
  ...args: unknown[]
): number;
declare function setInterval(
  callback: (...args: never[]) => void,
  milliseconds?: number,
  ...args: unknown[]
): number;
declare function clearTimeout(id: number | undefined): void;
declare function clearInterval(id: number | undefined): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<T>(value: T): T;
declare function btoa(text: string): string;
declare function atob(text: string): string;
