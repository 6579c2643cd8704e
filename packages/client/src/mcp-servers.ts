import type { Connection } from './connection.js';
import type { McpLog } from './operator-wire.js';
import type { CallOptions } from './resources.js';
import type { McpServer, McpServerList, McpSignIn } from './wire.js';

/** The MCP servers of the project; needs a secret key or a session. */
export class McpServers {
  readonly #connection: Connection;
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async list(options: CallOptions = {}): Promise<McpServer[]> {
    return (await this.#connection.json<McpServerList>('/v1/mcp/servers', options)).servers;
  }

  get(server: string, options: CallOptions = {}): Promise<McpServer> {
    return this.#connection.json(path(server), options);
  }

  /** Adds or changes a server, and starts to connect it. */
  put(server: string, config: Record<string, unknown>, options: CallOptions = {}): Promise<McpServer> {
    return this.#connection.json(path(server), { ...options, method: 'PUT', body: config, safe: true });
  }

  /** Removes a server. Calls under way are cut off. */
  remove(server: string, options: CallOptions = {}): Promise<void> {
    return this.#connection.json(path(server), { ...options, method: 'DELETE', safe: true });
  }

  /** Connects a server now, and has it list its tools. */
  test(server: string, options: CallOptions = {}): Promise<McpServer> {
    return this.#post(`${path(server)}/test`, {}, options);
  }

  /** Ends the server's connection or process, and starts a new one. */
  restart(server: string, options: CallOptions = {}): Promise<McpServer> {
    return this.#post(`${path(server)}/restart`, {}, options);
  }

  /** The last lines that a server's process wrote to its standard error. */
  async log(server: string, options: CallOptions = {}): Promise<McpLog['lines']> {
    return (await this.#connection.json<McpLog>(`${path(server)}/log`, options)).lines;
  }

  /** Starts a person's sign-in to a server that asks for one. */
  authorize(server: string, options: CallOptions = {}): Promise<McpSignIn> {
    return this.#post(`${path(server)}/authorize`, {}, options);
  }

  /** Accepts a tool's definition with this hash: new runs are offered it. */
  approveTool(server: string, tool: string, hash: string, options: CallOptions = {}): Promise<McpServer> {
    return this.#post(`${path(server)}/tools/${encodeURIComponent(tool)}/approve`, { hash }, options);
  }

  /** Rejects a tool's definition with this hash: nobody is offered it until the server changes it. */
  rejectTool(server: string, tool: string, hash: string, options: CallOptions = {}): Promise<McpServer> {
    return this.#post(`${path(server)}/tools/${encodeURIComponent(tool)}/reject`, { hash }, options);
  }

  #post<T>(address: string, body: unknown, options: CallOptions): Promise<T> {
    return this.#connection.json(address, { ...options, method: 'POST', body, safe: true });
  }
}

function path(server: string): string {
  return `/v1/mcp/servers/${encodeURIComponent(server)}`;
}
