/** An MCP server: a command to start, or a URL to connect to. */
export type McpServer = {
  /** Part of its tools' names. */
  name: string;
  /** Use only these of its tools. By default a gateway accepts 10 client tools per run. */
  tools?: string[];
  /** Continue without the server if it cannot be reached at the start. */
  optional?: boolean;
} & (
  | { command: string; args?: string[]; env?: Record<string, string>; cwd?: string }
  | { url: string; headers?: Record<string, string> }
);

/** A tool as a server describes it. */
export interface McpTool {
  name: string;
  description?: string;
  inputSchema?: unknown;
}

/** The result of a call. */
export interface McpResult {
  content?: Array<{ type: string; text?: string }>;
  structuredContent?: unknown;
  isError?: boolean;
}

/** Options of a call. */
export interface McpCallOptions {
  signal: AbortSignal;
  onprogress: (progress: unknown) => void;
  timeout: number;
  resetTimeoutOnProgress: boolean;
}

/** One connection, whichever SDK opened it. */
export interface McpConnection {
  listTools(): Promise<McpTool[]>;
  callTool(name: string, args: Record<string, unknown>, options: McpCallOptions): Promise<McpResult>;
  close(): Promise<void>;
}

/**
 * The parts of the official SDKs that are used, described by shape: the types of neither need to be
 * installed.
 */
interface SdkClient {
  connect(transport: unknown): Promise<void>;
  listTools(params?: { cursor: string }): Promise<{ tools: McpTool[]; nextCursor?: string }>;
  callTool(...args: unknown[]): Promise<McpResult>;
  close(): Promise<void>;
  onclose?: (() => void) | undefined;
}
interface Sdk {
  client(): SdkClient;
  stdio(parameters: Record<string, unknown>): Promise<unknown>;
  http(url: URL, options: Record<string, unknown>): Promise<unknown>;
  /** Position of the options among `callTool`'s parameters. */
  optionsAt: 1 | 2;
}

const IDENTITY = { name: 'toolgate-client', version: '0.1.0' };

/**
 * Connects to a server with the installed SDK: 2.x, otherwise 1.x. `onClose` is called when the connection
 * ends.
 */
export async function connectMcp(server: McpServer, onClose: () => void): Promise<McpConnection> {
  const sdk = await loadSdk();
  const transport =
    'url' in server
      ? await sdk.http(new URL(server.url), { requestInit: { headers: server.headers ?? {} } })
      : await sdk.stdio({
          command: server.command,
          args: server.args ?? [],
          ...(server.env ? { env: server.env } : {}),
          ...(server.cwd ? { cwd: server.cwd } : {}),
          stderr: 'ignore',
        });
  const client = sdk.client();
  client.onclose = onClose;
  await client.connect(transport);
  return {
    listTools: () => allTools(client),
    callTool: (name, args, options) => {
      const params = { name, arguments: args };
      return sdk.optionsAt === 1
        ? client.callTool(params, options)
        : client.callTool(params, undefined, options);
    },
    close: () => client.close(),
  };
}

const PAGES_MAX = 50;

async function allTools(client: SdkClient): Promise<McpTool[]> {
  const tools: McpTool[] = [];
  let page = await client.listTools();
  for (let pages = 1; ; pages += 1) {
    tools.push(...page.tools);
    if (!page.nextCursor || pages === PAGES_MAX) return tools;
    page = await client.listTools({ cursor: page.nextCursor });
  }
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await loadModern();
  } catch (modern) {
    try {
      return await loadClassic();
    } catch {
      throw new Error(
        'the MCP bridge needs @modelcontextprotocol/client (or @modelcontextprotocol/sdk): install one',
        {
          cause: modern,
        },
      );
    }
  }
}

async function loadModern(): Promise<Sdk> {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  return {
    client: () => new Client(IDENTITY, { versionNegotiation: { mode: 'auto' } }) as unknown as SdkClient,
    stdio: async (parameters) => {
      const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
      return new StdioClientTransport(parameters as never);
    },
    http: async (url, options) => new StreamableHTTPClientTransport(url, options),
    optionsAt: 1,
  };
}

async function loadClassic(): Promise<Sdk> {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  return {
    client: () => new Client(IDENTITY) as unknown as SdkClient,
    stdio: async (parameters) => {
      const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
      return new StdioClientTransport(parameters as never);
    },
    http: async (url, options) => {
      const { StreamableHTTPClientTransport } = await import(
        '@modelcontextprotocol/sdk/client/streamableHttp.js'
      );
      return new StreamableHTTPClientTransport(url, options);
    },
    optionsAt: 2,
  };
}
