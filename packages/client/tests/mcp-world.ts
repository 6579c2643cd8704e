import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';
import { ToolgateClient } from '../src/index.js';
import { type McpOptions, type McpPlugin, type McpToolsChange, mcpPlugin } from '../src/plugins/mcp.js';
import { afterwards } from './world.js';

/** Starting a Node process takes a while where others compile. */
export const PATIENCE = { timeout: 60_000 };

export const TEST_SERVER = fileURLToPath(new URL('mcp-test-server.js', import.meta.url));
export const EVERYTHING = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);

/** A client without a gateway, closed after the test. */
export function offline(): ToolgateClient {
  const client = new ToolgateClient({ url: 'http://127.0.0.1:1' });
  afterwards(() => client.close());
  return client;
}

/** A client with one server, and what the test wants to know of it. */
export interface Bridged {
  client: ToolgateClient;
  plugin: McpPlugin;
  changes: McpToolsChange[];
  /** Calls a tool by the server's own name. */
  call(tool: string, args?: Record<string, unknown>, context?: object): Promise<unknown>;
  names(): string[];
  /** What the server has written down. */
  diary(): string[];
}

/** The test server, started as a process that speaks `mode`. */
export async function bridged(mode: string, options: Partial<McpOptions> = {}): Promise<Bridged> {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-mcp-'));
  afterwards(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'diary');
  const server = { name: 't', command: process.execPath, args: [TEST_SERVER, mode, file] };
  const changes: McpToolsChange[] = [];
  const onToolsChanged = (change: McpToolsChange): void => void changes.push(change);
  const plugin = mcpPlugin({ servers: [server], onToolsChanged, ...options });
  const client = offline().use(plugin);
  await client.ready();
  return {
    client,
    plugin,
    changes,
    call: (tool, args = {}, context = {}) => client.execute({ name: `mcp_t_${tool}`, args }, context),
    names: () => client.getClientToolDefinitions().map(({ name }) => name),
    diary: () => readFileSync(file, 'utf8').split('\n').filter(Boolean),
  };
}

/** The processes of the test servers that have been started: each server, and its helper. */
export function pidsOf({ diary }: Bridged): number[] {
  const starts = diary().filter((line) => line.startsWith('started '));
  return starts.flatMap((line) => line.split(' ').slice(1).map(Number));
}

/** Waits until a process is gone; one that nobody has collected counts. */
export async function gone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), PATIENCE);
}

export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
