import { DESCRIPTION_LENGTH_MAX } from '../definition-rules.js';
import type { ToolgatePlugin } from '../plugin.js';
import type { RunnableTool, ToolContext } from '../tool.js';
import {
  connectMcp,
  type McpConnection,
  type McpResult,
  type McpServer,
  type McpTool,
} from './mcp-connection.js';
import { joinedName } from './mcp-name.js';
import { simplified } from './mcp-schema.js';

export type { McpServer } from './mcp-connection.js';

/** How long a call may go without a message from its server. */
const SILENCE_MS_MAX = 5 * 60_000;

/** Options of the MCP bridge. */
export interface McpOptions {
  servers: McpServer[];
  /** The plugin's name, to use several bridges; `mcp-bridge` by default. */
  name?: string;
}

/**
 * The tools of MCP servers as tools of this client: `mcp_<server>_<tool>`. Servers with a `command` are
 * started (in Node), those with a `url` are connected to by streamable HTTP. They are connected when the
 * plugin is registered and closed when it is removed; a server that dies is connected again by the next call.
 *
 * Needs `@modelcontextprotocol/client` 2.x or `@modelcontextprotocol/sdk` 1.x beside it.
 */
export function mcpPlugin({ servers, name = 'mcp-bridge' }: McpOptions): ToolgatePlugin {
  const bridges = servers.map((server) => new Bridge(server));
  const tools: RunnableTool[] = [];
  return {
    name,
    version: '1.0.0',
    tools,
    hooks: {
      onRegister: async () => {
        const started = await Promise.allSettled(bridges.map((bridge) => bridge.tools()));
        const failed = started.findIndex(
          ({ status }, index) => status === 'rejected' && !servers[index]?.optional,
        );
        if (failed >= 0) {
          await Promise.all(bridges.map((bridge) => bridge.close()));
          throw (started[failed] as PromiseRejectedResult).reason;
        }
        tools.splice(
          0,
          tools.length,
          ...started.flatMap((one) => (one.status === 'fulfilled' ? one.value : [])),
        );
      },
      onUnregister: async () => {
        await Promise.all(bridges.map((bridge) => bridge.close()));
      },
    },
  };
}

/** One server, and the connection to it while there is one. */
class Bridge {
  readonly #server: McpServer;
  #connection: Promise<McpConnection> | undefined;

  constructor(server: McpServer) {
    this.#server = server;
  }

  async tools(): Promise<RunnableTool[]> {
    const { name, tools: only } = this.#server;
    const connection = await this.#connected();
    const tools = await connection.listTools();
    return tools
      .filter((tool) => !only || only.includes(tool.name))
      .map((tool) => this.#runnable(name, tool));
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    // A connection that never opened needs no closing, and a broken one cannot be closed.
    await connection?.then((open) => open.close()).catch(() => {});
  }

  #runnable(server: string, tool: McpTool): RunnableTool {
    const description = tool.description?.trim() || `The tool ${tool.name} of the MCP server ${server}.`;
    return {
      definition: {
        name: joinedName(server, tool.name),
        description: shortened(description),
        parameters: simplified(tool.inputSchema),
      },
      execute: (args, context) => this.#call(tool.name, args, context),
    };
  }

  async #call(tool: string, args: Record<string, unknown>, context: ToolContext): Promise<unknown> {
    const connection = await this.#connected();
    const result = await connection
      .callTool(tool, args, {
        signal: context.signal,
        onprogress: (progress) => {
          context.progress(progress);
        },
        timeout: SILENCE_MS_MAX,
        resetTimeoutOnProgress: true,
      })
      .catch((error: unknown) => {
        // A process that ends closes its connection; a server behind a URL just stops answering, so
        // reconnect.
        if ('url' in this.#server && !context.signal.aborted && !isAnswer(error)) this.close();
        throw error;
      });
    const value = usable(result);
    if (result.isError) throw new Error(typeof value === 'string' ? value : JSON.stringify(value));
    return value;
  }

  async #connected(): Promise<McpConnection> {
    this.#connection ??= this.#connect();
    return this.#connection;
  }

  async #connect(): Promise<McpConnection> {
    const forget = (): void => {
      this.#connection = undefined;
    };
    try {
      return await connectMcp(this.#server, forget);
    } catch (cause) {
      forget();
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`the MCP server "${this.#server.name}" cannot be reached: ${reason}`, { cause });
    }
  }
}

/** Whether an error is a server's answer (JSON-RPC), not the lack of one. */
function isAnswer(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'number' && code < CONNECTION_CLOSED;
}

/** The SDKs' own code for a closed connection; JSON-RPC's codes are below it. */
const CONNECTION_CLOSED = -32000;

/**
 * The part of a result that a model can use: its structured content, otherwise its text, otherwise all parts.
 */
function usable({ structuredContent, content = [] }: McpResult): unknown {
  if (structuredContent !== undefined) return structuredContent;
  const allWords = content.every((part) => part.type === 'text');
  return allWords ? content.map((part) => part.text ?? '').join('\n') : content;
}

function shortened(text: string): string {
  const characters = [...text];
  const fits = characters.length <= DESCRIPTION_LENGTH_MAX;
  return fits ? text : `${characters.slice(0, DESCRIPTION_LENGTH_MAX - 1).join('')}…`;
}
