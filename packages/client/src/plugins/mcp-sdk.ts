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

/** An open stream of change notices, in the protocol of 2026-07-28. */
export interface SdkSubscription {
  readonly closed: Promise<'local' | 'graceful' | 'remote'>;
}

/** The parts of the official clients that are used, described by shape: the types of neither need to be installed. */
export interface SdkClient {
  connect(transport: unknown): Promise<void>;
  listTools(
    params?: { cursor: string },
    options?: { cacheMode: 'refresh' },
  ): Promise<{ tools: McpTool[]; nextCursor?: string }>;
  callTool(...args: unknown[]): Promise<McpResult>;
  close(): Promise<void>;
  getServerCapabilities(): { tools?: { listChanged?: boolean } } | undefined;
  /** Only in 2.x. */
  getProtocolEra?(): 'legacy' | 'modern' | undefined;
  /** Only in 2.x, and only of use in the modern era. */
  listen?(
    filter: { toolsListChanged: true },
    options: { signal: AbortSignal; timeout: number },
  ): Promise<SdkSubscription>;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
}

/** A question of a server, as it comes over the wire. */
export interface SdkQuestion {
  message: string;
  mode?: string;
  requestedSchema?: unknown;
  url?: string;
}

/** What a client is made with. */
export interface SdkClientOptions {
  /** Skip the probe for the modern era: the server is known to be older. */
  legacy: boolean;
  onToolsChanged: () => void;
  /** Declares the capability, and answers. */
  onQuestion?: (question: SdkQuestion, signal: AbortSignal) => Promise<Record<string, unknown>>;
}

/** One of the two official packages. */
export interface Sdk {
  client(options: SdkClientOptions): SdkClient;
  /** The package's own transport to a child process, for systems without process groups. */
  stdio(parameters: Record<string, unknown>): Promise<unknown>;
  /** The variables of the environment that a server is given unless told otherwise. */
  environment(): Promise<Record<string, string>>;
  http(url: URL, options: Record<string, unknown>): Promise<unknown>;
  /** Position of the options among `callTool`'s parameters. */
  optionsAt: 1 | 2;
}

const IDENTITY = { name: 'toolgate-client', version: '0.1.0' };

/** How often a server of the modern era may ask for more input before a call fails. */
const INPUT_ROUNDS_MAX = 10;

/** Sampling and roots are never offered: a server gets no model and no files through the bridge. */
const capabilities = ({ onQuestion }: SdkClientOptions): Record<string, unknown> =>
  onQuestion ? { elicitation: { form: {}, url: {} } } : {};

/** The installed package: `@modelcontextprotocol/client` 2.x, otherwise `@modelcontextprotocol/sdk` 1.x. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return await loadModern();
  } catch (modern) {
    try {
      return await loadClassic();
    } catch {
      const message =
        'the MCP bridge needs @modelcontextprotocol/client (or @modelcontextprotocol/sdk): install one';
      throw new Error(message, { cause: modern });
    }
  }
}

async function loadModern(): Promise<Sdk> {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  return {
    client: (options) => {
      const { legacy, onToolsChanged, onQuestion } = options;
      const client = new Client(IDENTITY, {
        capabilities: capabilities(options),
        versionNegotiation: { mode: legacy ? 'legacy' : 'auto' },
        inputRequired: { maxRounds: INPUT_ROUNDS_MAX },
      });
      client.setNotificationHandler('notifications/tools/list_changed', onToolsChanged);
      if (onQuestion) {
        client.setRequestHandler(
          'elicitation/create',
          async ({ params }, { mcpReq }) => (await onQuestion(params, mcpReq.signal)) as never,
        );
      }
      return client as unknown as SdkClient;
    },
    stdio: async (parameters) => {
      const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
      return new StdioClientTransport(parameters as never);
    },
    environment: async () => (await import('@modelcontextprotocol/client/stdio')).getDefaultEnvironment(),
    http: async (url, options) => new StreamableHTTPClientTransport(url, options),
    optionsAt: 1,
  };
}

async function loadClassic(): Promise<Sdk> {
  const [{ Client }, { ElicitRequestSchema, ToolListChangedNotificationSchema }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  return {
    client: (options) => {
      const { onToolsChanged, onQuestion } = options;
      const client = new Client(IDENTITY, { capabilities: capabilities(options) });
      client.setNotificationHandler(ToolListChangedNotificationSchema, onToolsChanged);
      if (onQuestion) {
        client.setRequestHandler(
          ElicitRequestSchema,
          async ({ params }, { signal }) => (await onQuestion(params, signal)) as never,
        );
      }
      return client as unknown as SdkClient;
    },
    stdio: async (parameters) => {
      const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
      return new StdioClientTransport(parameters as never);
    },
    environment: async () =>
      (await import('@modelcontextprotocol/sdk/client/stdio.js')).getDefaultEnvironment(),
    http: async (url, options) => {
      const { StreamableHTTPClientTransport } = await import(
        '@modelcontextprotocol/sdk/client/streamableHttp.js'
      );
      return new StreamableHTTPClientTransport(url, options);
    },
    optionsAt: 2,
  };
}
