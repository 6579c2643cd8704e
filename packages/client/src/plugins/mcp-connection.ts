import { pause, retryDelay } from '../back-off.js';
import { WatchedFetch } from './mcp-fetch.js';
import { McpProcess, type Spawn } from './mcp-process.js';
import {
  loadSdk,
  type McpResult,
  type McpTool,
  type Sdk,
  type SdkClient,
  type SdkClientOptions,
  type SdkSubscription,
} from './mcp-sdk.js';
import { TIMER_MS_MAX } from './mcp-silence.js';

/** An MCP server: a command to start, or a URL to connect to. */
export type McpServer = {
  /** Part of its tools' names. */
  name: string;
  /** Use only these of its tools. By default a gateway accepts 64 client tools per run, 32 with a public key. */
  only?: string[];
  /** The same as `only`. */
  tools?: string[];
  /** Continue without the server if it cannot be reached at the start. */
  optional?: boolean;
} & (
  | { command: string; args?: string[]; env?: Record<string, string>; cwd?: string }
  | { url: string; headers?: Record<string, string> }
);

/** Options of a call. */
export interface McpCallOptions {
  signal: AbortSignal;
  onprogress: (progress: unknown) => void;
}

/** Options of a connection. */
export interface McpConnectOptions extends SdkClientOptions {
  /** The connection has ended, for whatever reason. */
  onClose: () => void;
  /** Gives up the attempt. */
  signal: AbortSignal;
}

/** How long a server may take to confirm that it sends notices of changes. */
const LISTEN_MS_MAX = 5000;
/** A stream of notices that lasted this long was not a failure. */
const LISTEN_HEALTHY_MS = 10_000;
/** Streams of notices that may fail one after another. */
const LISTEN_FAILURES_MAX = 8;
/** How often the official clients try to open a broken stream of notices again, in the older protocol. */
const STREAM_RETRIES_MAX = 8;
/** How often a server is looked for after a stream of it has broken. */
const CHECKS_MAX = 3;
/** How long a server may take to respond while its connection is being closed. */
const RESPONSE_MS_MAX = 2000;
const PAGES_MAX = 50;

/**
 * Connects to a server. A process that ends at the first sight of the modern protocol is started again and spoken to in the
 * older one.
 */
export async function connectMcp(server: McpServer, options: McpConnectOptions): Promise<McpConnection> {
  const sdk = await loadSdk();
  try {
    return await McpConnection.open(sdk, server, options);
  } catch (error) {
    const older = 'command' in server && !options.legacy && codeOf(error) === 'ERA_NEGOTIATION_FAILED';
    if (!older || options.signal.aborted) throw error;
    return McpConnection.open(sdk, server, { ...options, legacy: true });
  }
}

/** One connection, whichever package opened it. */
export class McpConnection {
  readonly #sdk: Sdk;
  readonly #client: SdkClient;
  readonly #transport: Transport;
  readonly #requests: WatchedFetch;
  readonly #onClose: () => void;
  readonly #end = new AbortController();
  #checking = false;

  private constructor(sdk: Sdk, transport: Transport, requests: WatchedFetch, options: McpConnectOptions) {
    this.#sdk = sdk;
    this.#transport = transport;
    this.#requests = requests;
    this.#onClose = options.onClose;
    this.#client = sdk.client(options);
    this.#client.onclose = () => {
      this.#end.abort();
      this.#onClose();
    };
  }

  static async open(sdk: Sdk, server: McpServer, options: McpConnectOptions): Promise<McpConnection> {
    const { signal } = options;
    let connection: McpConnection | undefined;
    const requests = new WatchedFetch(() => void connection?.check());
    const transport = await transportOf(sdk, server, requests);
    signal.throwIfAborted();
    const stop = (): void => void transport.close();
    signal.addEventListener('abort', stop, { once: true });
    try {
      connection = new McpConnection(sdk, transport, requests, options);
      await connection.#client.connect(transport);
      await connection.#listen(options.onToolsChanged);
      signal.throwIfAborted();
      return connection;
    } catch (error) {
      await transport.close();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  get closed(): boolean {
    return this.#end.signal.aborted;
  }

  /** Whether the server speaks a protocol from before 2026-07-28. */
  get legacy(): boolean {
    return this.#client.getProtocolEra?.() !== 'modern';
  }

  /** Whether the server keeps a session for this connection, which it may have forgotten. */
  get hasSession(): boolean {
    return this.#transport.sessionId !== undefined;
  }

  async listTools(): Promise<McpTool[]> {
    const tools: McpTool[] = [];
    const fresh = { cacheMode: 'refresh' } as const;
    let page = await this.#client.listTools(undefined, fresh);
    for (let pages = 1; ; pages += 1) {
      tools.push(...page.tools);
      if (!page.nextCursor || pages === PAGES_MAX) return tools;
      page = await this.#client.listTools({ cursor: page.nextCursor }, fresh);
    }
  }

  callTool(name: string, args: Record<string, unknown>, options: McpCallOptions): Promise<McpResult> {
    const params = { name, arguments: args };
    // The caller decides how long to wait: it knows when a person is being asked.
    const given = { ...options, timeout: TIMER_MS_MAX };
    return this.#sdk.optionsAt === 1
      ? this.#client.callTool(params, given)
      : this.#client.callTool(params, undefined, given);
  }

  /** Closes the connection if the server does not know of it any more: calls that wait for an answer fail. */
  async check(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    for (let failures = 1; failures <= CHECKS_MAX && !this.closed; failures += 1) {
      try {
        await this.listTools();
        this.#checking = false;
        return;
      } catch {
        if (failures < CHECKS_MAX) await pause(retryDelay(failures), this.#end.signal);
      }
    }
    // Calls from now on open another connection; those that were just sent get the answer that it is gone.
    this.#onClose();
    await within(RESPONSE_MS_MAX, this.#requests.responded());
    await this.close();
  }

  async close(): Promise<void> {
    // A server that does not hear it forgets the session by itself.
    if (!this.closed && this.hasSession)
      await within(
        RESPONSE_MS_MAX,
        this.#transport.terminateSession?.().catch(() => {}),
      );
    this.#end.abort();
    await this.#client.close();
    // The client does not wait for a process that it has seen end; its group may still be ending.
    if ('pid' in this.#transport) await this.#transport.close();
  }

  /** Asks for notices of changes in the modern era; in the older one they come unasked. */
  async #listen(onToolsChanged: () => void): Promise<void> {
    if (this.legacy || !this.#client.getServerCapabilities()?.tools?.listChanged) return;
    const first = await this.#subscribe();
    if (first) void this.#keepListening(first, onToolsChanged);
  }

  async #keepListening(first: SdkSubscription, onToolsChanged: () => void): Promise<void> {
    let stream: SdkSubscription | undefined = first;
    for (let failures = 0; ; ) {
      const since = performance.now();
      await stream?.closed;
      if (this.closed) return;
      failures = performance.now() - since > LISTEN_HEALTHY_MS ? 1 : failures + 1;
      // The next call or listing opens the connection again, if the server is still there.
      if (failures > LISTEN_FAILURES_MAX) return this.close();
      await pause(retryDelay(failures), this.#end.signal);
      if (this.closed) return;
      stream = await this.#subscribe();
      // What changed in between was not announced.
      if (stream) onToolsChanged();
    }
  }

  /** A stream of notices that the server has confirmed. */
  async #subscribe(): Promise<SdkSubscription | undefined> {
    const options = { signal: this.#end.signal, timeout: LISTEN_MS_MAX };
    return this.#client.listen?.({ toolsListChanged: true }, options).catch(() => undefined);
  }
}

/** The parts of a transport that are used. */
interface Transport {
  close(): Promise<void>;
  readonly sessionId?: string | undefined;
  terminateSession?(): Promise<void>;
}

async function transportOf(sdk: Sdk, server: McpServer, requests: WatchedFetch): Promise<Transport> {
  if ('url' in server) {
    const transport = await sdk.http(new URL(server.url), {
      requestInit: { headers: server.headers ?? {} },
      fetch: requests.fetch,
      reconnectionOptions: {
        initialReconnectionDelay: 1000,
        maxReconnectionDelay: 30_000,
        reconnectionDelayGrowFactor: 1.5,
        maxRetries: STREAM_RETRIES_MAX,
      },
    });
    return transport as Transport;
  }
  const { command, args = [], env, cwd } = server;
  const where = cwd === undefined ? {} : { cwd };
  const spawn = spawnInGroup();
  if (!spawn) {
    const given = env ? { env } : {};
    return (await sdk.stdio({ command, args, ...given, ...where, stderr: 'ignore' })) as Transport;
  }
  const inherited = await sdk.environment();
  return new McpProcess({ command, args, env: { ...inherited, ...env }, ...where }, spawn);
}

/**
 * Node's `spawn`, where it can make process groups; not on Windows, and not before Node 20.16. Not imported: what browsers load
 * has nothing of Node in it.
 */
function spawnInGroup(): Spawn | undefined {
  if (process.platform === 'win32') return undefined;
  return process.getBuiltinModule?.('node:child_process')?.spawn;
}

/** Waits for the work, but not too long. */
async function within(ms: number, work: Promise<unknown> | undefined): Promise<void> {
  const late = new AbortController();
  await Promise.race([work, pause(ms, late.signal)]);
  late.abort();
}

export function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}
