import type { ToolgateClient } from './client.js';
import type { CallOptions } from './resources.js';
import type { SharedTool, ToolCall } from './wire.js';

/** Where a tool is executed, and for whom: the gateway knows the rest of the context itself. */
export interface ExecutionContext extends CallOptions {
  /** The space of the conversation; its history, members and grants are those that count. */
  sessionId?: string;
  /** The agent whose tools and grants count. */
  maestroId?: string;
  /** How long to wait for the outcome, in seconds; 10 by default. */
  waitSeconds?: number;
}

/** What people who choose a tool want to know of it. */
export interface ToolMetadata {
  id: string;
  name: string;
  description: string;
  category?: string;
  triggers: string[];
  permissions: string[];
  voiceEnabled: boolean;
}

/**
 * Executes shared tools through the gateway: arguments, prerequisites, permissions, limits and approvals are checked there, in
 * that order. A thin surface over `client.tools` and `client.registry`.
 */
export class ToolOrchestrator {
  readonly #client: ToolgateClient;
  constructor(client: ToolgateClient) {
    this.#client = client;
  }

  /** Calls a tool. A call that waits for somebody, such as an approval, is returned as it stands. */
  execute(id: string, args: Record<string, unknown>, context: ExecutionContext = {}): Promise<ToolCall> {
    const { sessionId, maestroId, ...options } = context;
    const call = {
      arguments: args,
      ...(sessionId === undefined ? {} : { spaceId: sessionId }),
      ...(maestroId === undefined ? {} : { agent: maestroId }),
    };
    return this.#client.tools.call(id, call, options);
  }

  /** What is known of a tool; `undefined` if there is none. */
  async getToolMetadata(id: string, options: CallOptions = {}): Promise<ToolMetadata | undefined> {
    const tool = await this.#client.registry.get(id, options);
    return tool === undefined ? undefined : metadata(tool);
  }

  /** Tools of a category. */
  async getToolsByCategory(category: string, options: CallOptions = {}): Promise<ToolMetadata[]> {
    return (await this.#client.registry.getByCategory(category, options)).map(metadata);
  }
}

function metadata({ name, definition }: SharedTool): ToolMetadata {
  const written = definition as Record<string, unknown>;
  const words = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
  const { title, category, description, triggers, permissions, voiceEnabled } = written;
  return {
    id: name,
    name: typeof title === 'string' ? title : name,
    description: typeof description === 'string' ? description : '',
    ...(typeof category === 'string' ? { category } : {}),
    triggers: words(triggers),
    permissions: words(permissions),
    voiceEnabled: voiceEnabled !== false,
  };
}
