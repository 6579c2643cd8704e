/** A server to start, or one to reach. */
export type McpServer = {
  /** Part of its tools' names. */
  name: string;
  /** Only these of its tools. A run takes 10 client tools unless the gateway's settings say otherwise. */
  tools?: string[];
  /** Goes on without it when it cannot be reached at the start. */
  optional?: boolean;
} & (
  | { command: string; args?: string[]; env?: Record<string, string>; cwd?: string }
  | { url: string; headers?: Record<string, string> }
);

/** What a server says of a tool. */
export interface McpTool {
  name: string;
  description?: string;
  inputSchema?: unknown;
}

/** What a tool gave. */
export interface McpResult {
  content?: Array<{ type: string; text?: string }>;
  structuredContent?: unknown;
  isError?: boolean;
}

/** What a call may be given. */
export interface McpCallOptions {
  signal: AbortSignal;
  onprogress: (progress: unknown) => void;
  timeout: number;
  resetTimeoutOnProgress: boolean;
}

/** One connection, whichever SDK made it. */
export interface McpConnection {
  listTools(): Promise<McpTool[]>;
  callTool(name: string, args: Record<string, unknown>, options: McpCallOptions): Promise<McpResult>;
  close(): Promise<void>;
}

/** The parts of the official SDKs that are used, by shape: the types of neither are needed to use the other. */
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
  /** Where `callTool` takes its options. */
  optionsAt: 1 | 2;
}

const IDENTITY = { name: 'toolgate-client', version: '0.1.0' };

/** Connects to a server with the SDK that is installed: 2.x, otherwise 1.x. `onClose` is told when it goes away. */
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
