import { pause, retryDelay } from './back-off.js';
import {
  AbortedError,
  CODES,
  ConnectionError,
  errorOf,
  ProtocolError,
  ToolgateError,
  ValidationError,
} from './error.js';

/** Attempts of a request that is safe to repeat. */
const TRIES_MAX = 4;

/** How a client reaches its gateway. */
export interface ConnectionOptions {
  /** The gateway's URL, such as `http://127.0.0.1:8787`; in a page also a path of its own origin, such as `/gateway`. */
  url: string;
  /** The secret key of a backend, `sk_…`. Never use it in a browser. */
  key?: string;
  /** The project's public key, `pk_…`, together with `token`. */
  publicKey?: string;
  /** The user's JWT, or a function that fetches a fresh one. */
  token?: string | (() => string | Promise<string>);
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** One request. */
export interface RequestOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  query?: Record<string, string | number | boolean | undefined>;
  /** A body, sent as JSON. */
  body?: unknown;
  /** A raw body, instead of `body`. */
  bytes?: Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /**
   * Whether repeating it does no harm. Such a request is retried when the connection breaks or the gateway is
   * unavailable. Reads always are.
   */
  safe?: boolean;
  /** Whether it is sent even if the page is being closed. */
  keepalive?: boolean;
}

/** Sends requests with the caller's credentials, and throws error responses. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #base: string;
  readonly #log: (line: string) => void;
  /** The token of the last request. */
  #lastToken: string | undefined;
  #csrfToken: string | undefined;

  constructor(options: ConnectionOptions, log: (line: string) => void) {
    this.#options = options;
    this.#base = checkedUrl(options.url).replace(/\/+$/, '');
    this.#log = log;
  }

  /** Sends this token with every change from now on; a session needs it. */
  useCsrfToken(token: string | undefined): void {
    this.#csrfToken = token;
  }

  /** A URL of the gateway's, complete. */
  absolute(url: string): string {
    return url.startsWith('/') ? this.#base + url : url;
  }

  /** The JSON of a response; `undefined` if it has no body. */
  async json<T>(path: string, options: RequestOptions = {}): Promise<T> {
    const response = await this.send(path, options);
    if (response.status === 204) return undefined as T;
    try {
      return (await response.json()) as T;
    } catch (cause) {
      throw options.signal?.aborted
        ? aborted(options.signal)
        : new ProtocolError(CODES.protocol, `${path} returned a response that is not JSON`, { cause });
    }
  }

  /** A successful response. Error responses and broken connections are thrown. */
  async send(path: string, options: RequestOptions = {}): Promise<Response> {
    const safe = options.safe ?? (options.method ?? 'GET') === 'GET';
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#once(path, options);
      } catch (error) {
        if (!(safe && error instanceof ToolgateError && error.retryable) || attempt >= TRIES_MAX) throw error;
        this.#log(`${path}: ${error.message}; retrying`);
        await pause(error.retryAfterMs ?? retryDelay(attempt), options.signal);
        if (options.signal?.aborted) throw aborted(options.signal);
      }
    }
  }

  async #once(path: string, options: RequestOptions): Promise<Response> {
    const { method = 'GET', query, body, bytes, headers, signal, keepalive } = options;
    if (signal?.aborted) throw aborted(signal);
    const last = keepalive ? this.#lastCredentials() : undefined;
    const url = this.#base + path + queryText(query);
    const sent: RequestInit = {
      method,
      headers: {
        ...(last ?? (await this.#credentials())),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'GET' || this.#csrfToken === undefined ? {} : { 'x-toolgate-csrf': this.#csrfToken }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(bytes === undefined ? {} : { body: bytes }),
      ...(signal ? { signal } : {}),
      ...(keepalive ? { keepalive } : {}),
    };
    let response: Response;
    try {
      response = await (this.#options.fetch ?? globalThis.fetch)(url, sent);
    } catch (cause) {
      throw signal?.aborted ? aborted(signal) : unreachable(this.#base, cause);
    }
    this.#log(`${method} ${path} ${response.status}`);
    // The last token may have expired; whoever is still there gets a fresh one.
    if (last && response.status === 401) return this.#once(path, { ...options, keepalive: false });
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async #credentials(): Promise<Record<string, string>> {
    const { key, token } = this.#options;
    if (key !== undefined) return { authorization: `Bearer ${key}` };
    const bearer = typeof token === 'function' ? await token() : token;
    this.#lastToken = bearer;
    return this.#userCredentials(bearer);
  }

  /**
   * Credentials at hand, for a page that is being closed: it cannot wait for a token that must be fetched first.
   */
  #lastCredentials(): Record<string, string> | undefined {
    const { key, token } = this.#options;
    if (key !== undefined || typeof token !== 'function' || this.#lastToken === undefined) return undefined;
    return this.#userCredentials(this.#lastToken);
  }

  #userCredentials(bearer: string | undefined): Record<string, string> {
    const { publicKey } = this.#options;
    return {
      ...(publicKey === undefined ? {} : { 'x-public-key': publicKey }),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    };
  }
}

/**
 * The URL, if a request can be sent there. Without this check a missing scheme shows only when the first request fails, as a
 * gateway that cannot be reached.
 */
function checkedUrl(url: unknown): string {
  const expected = 'expected one like "http://127.0.0.1:8787"';
  const refuse = (what: string): never => {
    throw new ValidationError(CODES.validation, `${what}; ${expected}`);
  };
  if (url === undefined || url === null || url === '') return refuse('url is missing');
  if (typeof url !== 'string') return refuse(`url is of type ${typeof url}`);
  if (/^\/(?!\/)/.test(url) && globalThis.location) return url;
  // `localhost:8787` is a URL too, with the scheme `localhost`.
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(url)?.[1];
  if (scheme === undefined) return refuse(`url "${url}" has no scheme`);
  if (!/^https?$/i.test(scheme)) return refuse(`url "${url}" has the scheme "${scheme}"`);
  return URL.canParse(url) ? url : refuse(`url "${url}" is malformed`);
}

/** The error for an aborted signal. */
export function aborted(signal: AbortSignal): AbortedError {
  return new AbortedError(CODES.aborted, 'the caller aborted the request', { cause: signal.reason });
}

function unreachable(base: string, cause: unknown): ConnectionError {
  return new ConnectionError(CODES.connection, `the gateway at ${base} cannot be reached`, {
    cause,
    retryable: true,
  });
}

function queryText(query: RequestOptions['query']): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `?${text}` : '';
}
