import { callHandler } from './call-handler.js';
import { type CallerContext, callerContext } from './caller-contexts.js';
import type { ToolgateClient } from './client.js';
import { isRecord } from './definition-rules.js';
import type { CallOptions } from './resources.js';
import { type ToolDataChannelMessage, ToolEventType, toolMessageOf } from './tool-message.js';
import { type RegisteredTool, ToolRegistry } from './tool-registry.js';
import type { SharedTool, ToolCall } from './wire.js';

/** Where a tool is executed, and what its handler is told. Of this, `sessionId` and `maestroId` are sent to the gateway. */
export interface ExecutionContext extends CallOptions, CallerContext {
  /** The space of the conversation; its history, members and grants are those that count. */
  sessionId?: string;
  /** How long to wait for the outcome, in seconds; 10 by default. */
  waitSeconds?: number;
}

/** A call of a tool, and the arguments that it was made with. */
export interface ExecutedCall extends ToolCall {
  arguments: Record<string, unknown>;
}

/** Is told of every step of a call, with the messages of the data channel: a function, or an object with `broadcast`. */
export type ToolBroadcaster =
  | ((message: ToolDataChannelMessage) => void)
  | { broadcast(message: ToolDataChannelMessage): void };

/** What people who choose a tool want to know of it. */
export interface ToolMetadata {
  id: string;
  name: string;
  description: string;
  category?: string;
  triggers: string[];
  permissions: string[];
  /** Tools that must have given an output before, as the definition has them. */
  prerequisites: unknown[];
  voiceEnabled: boolean;
}

/**
 * Executes shared tools through the gateway: arguments, prerequisites, permissions, limits and approvals are checked there, in
 * that order. A thin surface over `client.tools` and `client.registry`.
 */
export class ToolOrchestrator {
  readonly #client: ToolgateClient;
  #broadcaster: ToolBroadcaster | undefined;
  constructor(gateway: ToolgateClient | ToolRegistry) {
    this.#client = gateway instanceof ToolRegistry ? gateway.client : gateway;
  }

  /**
   * Tells somebody of every step of the calls that are executed from now on, also of those that follow a later yes. Members of
   * the space hear of them by themselves, over `spaces.connectRtc`.
   */
  setBroadcaster(broadcaster: ToolBroadcaster | undefined): void {
    this.#broadcaster = broadcaster;
  }

  /**
   * Calls a tool. A call that waits for somebody, such as an approval, is returned as it stands. A handler that this client
   * serves is told the context.
   */
  async execute(
    id: string,
    args: Record<string, unknown>,
    context: ExecutionContext = {},
  ): Promise<ExecutedCall> {
    const { sessionId, maestroId, waitSeconds, signal } = context;
    const broadcaster = this.#broadcaster;
    const call = {
      arguments: args,
      ...(sessionId === undefined ? {} : { spaceId: sessionId }),
      ...(maestroId === undefined ? {} : { agent: maestroId }),
    };
    const executed = await this.#client.tools.call(id, call, {
      signal,
      waitSeconds,
      context: callerContext(context),
      // Each step is told when it happens, not when the call has its outcome.
      onBegun: broadcaster && (({ runId }) => void this.#broadcastRun(runId, broadcaster, signal)),
    });
    return { ...executed, arguments: args };
  }

  /**
   * Whether every prerequisite of a tool, which is a plugin or what `registry.get` returns, is among `activeTools`, the tools that have
   * given an output. False if there is no tool, or its prerequisites cannot be read. The gateway checks what it has stored itself
   * when a tool is executed.
   */
  validatePrerequisites(
    tool: Pick<RegisteredTool, 'prerequisites'> | SharedTool | undefined,
    { activeTools = [] }: ExecutionContext = {},
  ): boolean {
    // A promise of a tool, which JavaScript lets pass, has none of these members.
    if (!isRecord(tool) || !['id', 'definition', 'prerequisites'].some((member) => member in tool))
      return false;
    const written = 'definition' in tool ? [tool, tool.definition] : [tool];
    return written.every(
      (one) => isRecord(one) && prerequisitesOf(one).every((each) => isMet(each, activeTools)),
    );
  }

  async #broadcastRun(runId: string, broadcaster: ToolBroadcaster, signal?: AbortSignal): Promise<void> {
    const tell = typeof broadcaster === 'function' ? broadcaster : broadcaster.broadcast.bind(broadcaster);
    const started = new Set<unknown>();
    try {
      for await (const event of this.#client.runs.subscribe(runId, signal ? { signal } : {})) {
        const message = toolMessageOf(event);
        if (!message) continue;
        // The log has no event for the start of a call that may be executed again, or whose output is fixed.
        const start = message.type === ToolEventType.TOOL_COMPLETED ? startBefore(message) : message;
        if (start !== message && !started.has(start.payload?.toolCallId)) callHandler(() => tell(start));
        if (start.type === ToolEventType.TOOL_EXECUTING) started.add(start.payload?.toolCallId);
        callHandler(() => tell(message));
      }
    } catch {
      // The stream cannot be read on. What becomes of the call does not depend on who is told.
    }
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

/** The prerequisites of a definition. One that is no list is a prerequisite that nothing meets. */
function prerequisitesOf({ prerequisites }: Record<string, unknown>): unknown[] {
  if (prerequisites === undefined || prerequisites === null) return [];
  return Array.isArray(prerequisites) ? prerequisites : [{ unreadable: prerequisites }];
}

/** Whether the tool that a prerequisite names is among these. */
function isMet(prerequisite: unknown, activeTools: readonly string[]): boolean {
  const tool = isRecord(prerequisite) ? prerequisite.tool : prerequisite;
  return typeof tool === 'string' && activeTools.includes(tool);
}

/** The message that the call of an outcome was under way; the outcome itself where a client executed it, and has told. */
function startBefore(outcome: ToolDataChannelMessage): ToolDataChannelMessage {
  const { toolId, timestamp, payload: { toolCallId, placement, runId } = {} } = outcome;
  if (placement === 'client') return outcome;
  const payload = { event: 'tool-executing', toolCallId, placement, runId };
  return { type: ToolEventType.TOOL_EXECUTING, toolId, payload, timestamp };
}

function metadata({ name, definition }: SharedTool): ToolMetadata {
  const written = definition as Record<string, unknown>;
  const words = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
  const { title, category, description, triggers, permissions, voiceEnabled, voice } = written;
  const { enabled } = (typeof voice === 'object' && voice !== null ? voice : {}) as { enabled?: unknown };
  return {
    id: name,
    name: typeof title === 'string' ? title : name,
    description: typeof description === 'string' ? description : '',
    ...(typeof category === 'string' ? { category } : {}),
    triggers: words(triggers),
    permissions: words(permissions),
    prerequisites: prerequisitesOf(written),
    voiceEnabled: voiceEnabled !== false && enabled !== false,
  };
}
