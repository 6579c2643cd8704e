import type { ToolgateClient } from '../client.js';
import type { ToolgatePlugin } from '../plugin.js';
import type { RunnableTool } from '../tool.js';
import { Bridge } from './mcp-bridge.js';
import type { CatalogChange } from './mcp-catalog.js';
import type { McpServer } from './mcp-connection.js';
import type { McpElicitation } from './mcp-elicitation.js';

export type { McpServer } from './mcp-connection.js';
export type { McpAnswer, McpElicitation, McpQuestion } from './mcp-elicitation.js';

/** Options of the MCP bridge. */
export interface McpOptions {
  servers: McpServer[];
  /** The plugin's name, to use several bridges; `mcp-bridge` by default. */
  name?: string;
  /**
   * Called when the tools of a server, or the warnings about them, have changed: at the start, and when the server announces
   * another list or is connected again. The client has the new tools by then; chats that run keep those that they were started with.
   */
  onToolsChanged?: (change: McpToolsChange) => void;
  /**
   * Answers the questions that servers ask people. Without it servers are told that nobody can be asked, and a call that
   * needs an answer fails.
   */
  onElicitation?: McpElicitation;
}

/** What became of a server's tools; the names are those that the model sees. */
export interface McpToolsChange extends CatalogChange {
  server: string;
  /** Tools that were simplified or left out, in words. */
  warnings: string[];
}

/** The bridge, as a plugin. */
export interface McpPlugin extends ToolgatePlugin {
  /** Lists the tools of all servers again, and connects to those that are not connected. */
  refresh(): Promise<void>;
}

/**
 * The tools of MCP servers as tools of this client: `mcp_<server>_<tool>`. Servers with a `command` are
 * started (in Node), those with a `url` are connected to by streamable HTTP. They are connected when the
 * plugin is registered and closed when it is removed, with everything that a process has started. One that ends
 * is connected again by the next call or listing; calls that were under way fail, and are not repeated.
 *
 * Needs `@modelcontextprotocol/client` 2.x or `@modelcontextprotocol/sdk` 1.x beside it.
 */
export function mcpPlugin(options: McpOptions): McpPlugin {
  const { name = 'mcp-bridge' } = options;
  const tools: RunnableTool[] = [];
  let bridges: Bridge[] = [];
  let client: ToolgateClient | undefined;

  /** Changes of the start, which are told when all servers are there. */
  let untold: McpToolsChange[] = [];

  const tell = (change: McpToolsChange): void => {
    const { added, removed, changed, warnings } = change;
    if (added.length + removed.length + changed.length + warnings.length === 0) return;
    try {
      options.onToolsChanged?.(change);
    } catch {
      // The program's own error: nobody here could do anything about it.
    }
  };
  const listed = (change: McpToolsChange): void => {
    if (!client) return void untold.push(change);
    const clashes = replace(tools, bridges, namesOfOthers(client, tools));
    client.refreshPlugin(name);
    tell({ ...change, warnings: [...change.warnings, ...clashes] });
  };
  const start = async (registered: ToolgateClient): Promise<void> => {
    const started = await Promise.allSettled(bridges.map((bridge) => bridge.list()));
    started.forEach((one, index) => {
      if (one.status === 'rejected' && !options.servers[index]?.optional) throw one.reason;
    });
    // A name that another tool has is an error here, not a warning.
    replace(tools, bridges, undefined);
    registered.refreshPlugin(name);
    client = registered;
    for (const change of untold.splice(0)) tell(change);
  };
  const close = async (): Promise<void> => {
    client = undefined;
    untold = [];
    tools.length = 0;
    await Promise.all(bridges.map((bridge) => bridge.close()));
  };

  return {
    name,
    version: '1.0.0',
    tools,
    hooks: {
      onRegister: async (registered) => {
        bridges = options.servers.map((server) => {
          const onListed = (change: CatalogChange, warnings: string[]): void =>
            listed({ server: server.name, ...change, warnings });
          return new Bridge(server, { onListed, onElicitation: options.onElicitation });
        });
        try {
          await start(registered);
        } catch (error) {
          await close();
          throw error;
        }
      },
      onUnregister: close,
    },
    refresh: async () => {
      await Promise.all(bridges.map((bridge) => bridge.list()));
    },
  };
}

/** Puts the tools of all servers in the place of those before, and says which were left out because of `taken` names. */
function replace(tools: RunnableTool[], bridges: Bridge[], taken: Set<string> | undefined): string[] {
  const clashes: string[] = [];
  const kept = bridges
    .flatMap((bridge) => bridge.tools())
    .filter(({ definition: { name } }) => {
      const clash = taken?.has(name) ?? false;
      if (clash) clashes.push(`${name} was left out: another tool has that name`);
      taken?.add(name);
      return !clash;
    });
  tools.splice(0, tools.length, ...kept);
  return clashes;
}

function namesOfOthers(client: ToolgateClient, mine: RunnableTool[]): Set<string> {
  const names = new Set(client.getClientToolDefinitions().map((definition) => definition.name));
  for (const { definition } of mine) names.delete(definition.name);
  return names;
}
