import { pause } from '../back-off.js';
import { unlessAborted } from '../call-runner.js';
import type { RunnableTool, ToolContext } from '../tool.js';
import { type Catalog, type CatalogChange, catalogOf, changeOf } from './mcp-catalog.js';
import { connectMcp, type McpConnection, type McpServer } from './mcp-connection.js';
import { answerQuestion, type McpElicitation } from './mcp-elicitation.js';
import { failureOf, missingInput } from './mcp-failure.js';
import { Reopening } from './mcp-reopen.js';
import type { McpResult, SdkQuestion } from './mcp-sdk.js';
import { SilenceWatch } from './mcp-silence.js';

/** How long a call may go without a message from its server. */
const SILENCE_MS_MAX = 5 * 60_000;
/** Shortest time between two listings that a server asks for. */
const LIST_INTERVAL_MS = 1000;
/** Questions of one server that wait for an answer at once. */
const QUESTIONS_MAX = 8;

/** What a bridge tells its plugin. */
export interface BridgeEvents {
  /** The tools were listed, and they or the warnings differ from before. */
  onListed: (change: CatalogChange, warnings: string[]) => void;
  onElicitation: McpElicitation | undefined;
}

/** One server, and the connection to it while there is one. */
export class Bridge {
  readonly server: McpServer;
  readonly #events: BridgeEvents;
  readonly #stop = new AbortController();
  readonly #silence = new SilenceWatch(SILENCE_MS_MAX);
  readonly #reopening: Reopening;
  #catalog: Catalog = { tools: [], warnings: [] };
  #connection: Promise<McpConnection> | undefined;
  /** Connections that are ending. */
  readonly #ending = new Set<Promise<unknown>>();
  #legacy = false;
  #wasOpen = false;
  #questions = 0;
  /** Listings, one after another. */
  #listing: Promise<unknown> = Promise.resolve();
  #stale: 'no' | 'yes' | 'being listed' = 'no';

  constructor(server: McpServer, events: BridgeEvents) {
    this.server = server;
    this.#events = events;
    this.#reopening = new Reopening('command' in server);
  }

  /** The tools of the last listing. */
  tools(): RunnableTool[] {
    return this.#catalog.tools.map(({ original, definition }) => ({
      definition,
      execute: (args, context) => this.#call(original, args, context),
    }));
  }

  /** Lists the tools, and connects for it if necessary. */
  list(): Promise<void> {
    const next = this.#listing.then(() => this.#listNow());
    this.#listing = next.catch(() => {});
    return next;
  }

  /** Ends the connection, and a process with everything that it has started. */
  async close(): Promise<void> {
    this.#stop.abort(new Error(`the MCP server "${this.server.name}" was removed`));
    this.#drop(this.#connection);
    await Promise.all(this.#ending);
  }

  async #listNow(): Promise<void> {
    const connection = await this.#connected();
    const listed = await connection.listTools();
    const before = this.#catalog;
    this.#catalog = catalogOf(this.server.name, listed, this.server.only ?? this.server.tools);
    const change = changeOf(before.tools, this.#catalog.tools);
    const { warnings } = this.#catalog;
    const isNews =
      Object.values(change).some((names) => names.length > 0) || `${warnings}` !== `${before.warnings}`;
    if (isNews) this.#events.onListed(change, warnings);
  }

  /** Lists again soon: at once, but not more often than the interval allows. */
  async #listAgain(): Promise<void> {
    if (this.#stale !== 'no') {
      this.#stale = 'yes';
      return;
    }
    do {
      this.#stale = 'being listed';
      try {
        await this.list();
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        const nothing = { added: [], removed: [], changed: [] };
        this.#events.onListed(nothing, [`the tools could not be listed again: ${messageOf(error)}`]);
      }
      await pause(LIST_INTERVAL_MS, this.#stop.signal);
      // Written by calls of this function in between.
    } while ((this.#stale as string) === 'yes' && !this.#stop.signal.aborted);
    this.#stale = 'no';
  }

  async #call(tool: string, args: Record<string, unknown>, context: ToolContext): Promise<unknown> {
    try {
      return usable(await this.#request(tool, args, context));
    } catch (error) {
      if (!(error instanceof ForgottenSession)) throw error;
      // The server has rejected the call unseen, so that it may be made again.
      return usable(await this.#request(tool, args, context));
    }
  }

  async #request(tool: string, args: Record<string, unknown>, context: ToolContext): Promise<McpResult> {
    const opening = this.#connected();
    const connection = await opening;
    context.signal.throwIfAborted();
    const { hasSession } = connection;
    const watched = this.#silence.watch();
    try {
      return await connection.callTool(tool, args, {
        signal: AbortSignal.any([context.signal, watched.signal]),
        onprogress: (progress) => {
          watched.heard();
          context.progress(progress);
        },
      });
    } catch (error) {
      context.signal.throwIfAborted();
      throw this.#explained(error, tool, opening, { hasSession, closed: connection.closed });
    } finally {
      watched.end();
    }
  }

  /** The error for the model. A connection that has failed is dropped. */
  #explained(
    error: unknown,
    tool: string,
    opening: Promise<McpConnection>,
    connection: { hasSession: boolean; closed: boolean },
  ): unknown {
    const name = `the MCP server "${this.server.name}"`;
    const method = missingInput(error);
    if (method === 'elicitation/create')
      return new Error(`${name} asks a person for input, and this program cannot ask: set onElicitation`);
    if (method !== undefined) return new Error(`${name} asks for ${method}, which is not offered`);
    const failure = failureOf(error, connection);
    if (failure === 'answer') return error;
    this.#drop(opening);
    const cause = { cause: error };
    if (failure === 'session') return new ForgottenSession(`${name} has forgotten the session`, cause);
    if (failure === 'unreachable') return new Error(`${name} cannot be reached: ${messageOf(error)}`, cause);
    const words = `${name} gave no answer to ${tool}, it is unknown whether the call was carried out`;
    return new Error(`${words}: ${messageOf(error)}`, cause);
  }

  #connected(): Promise<McpConnection> {
    if (this.#stop.signal.aborted) return Promise.reject(this.#stop.signal.reason);
    if (!this.#connection) {
      const opening = this.#open(() => this.#forget(opening));
      opening.catch(() => this.#forget(opening));
      this.#connection = opening;
    }
    return this.#connection;
  }

  async #open(onClose: () => void): Promise<McpConnection> {
    const { onElicitation } = this.#events;
    const { name } = this.server;
    const { signal } = this.#stop;
    try {
      await this.#reopening.turn(signal);
      signal.throwIfAborted();
      const connection = await connectMcp(this.server, {
        legacy: this.#legacy,
        signal,
        onClose,
        onToolsChanged: () => void this.#listAgain(),
        ...(onElicitation
          ? { onQuestion: (question, cancel) => this.#ask(onElicitation, question, cancel) }
          : {}),
      });
      this.#reopening.opened();
      this.#legacy = connection.legacy;
      // Another process, or another session, may have other tools.
      if (this.#wasOpen) void this.#listAgain();
      this.#wasOpen = true;
      return connection;
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      this.#reopening.failed();
      // It may be another version by now.
      this.#legacy = false;
      throw new Error(`the MCP server "${name}" cannot be reached: ${messageOf(cause)}`, { cause });
    }
  }

  async #ask(
    ask: McpElicitation,
    question: SdkQuestion,
    cancel: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const { name } = this.server;
    if (this.#questions >= QUESTIONS_MAX)
      throw new Error(`${QUESTIONS_MAX} questions of the MCP server "${name}" wait already`);
    const signal = AbortSignal.any([cancel, this.#stop.signal]);
    this.#questions += 1;
    try {
      const answer = (): Promise<Record<string, unknown>> => answerQuestion(ask, name, question, signal);
      return await this.#silence.hold(() => unlessAborted(answer, signal));
    } finally {
      this.#questions -= 1;
    }
  }

  #forget(connection: Promise<McpConnection>): void {
    if (this.#connection === connection) this.#connection = undefined;
  }

  #drop(connection: Promise<McpConnection> | undefined): void {
    if (!connection) return;
    this.#forget(connection);
    // A connection that never opened needs no closing, and a broken one cannot be closed.
    const ending = connection.then((open) => open.close()).catch(() => {});
    this.#ending.add(ending);
    ending.then(() => this.#ending.delete(ending));
  }
}

/** The server does not know the session any more. */
class ForgottenSession extends Error {}

/**
 * The part of a result that a model can use: its structured content, otherwise its text, otherwise all parts. Throws what
 * the server calls an error.
 */
function usable({ structuredContent, content = [], isError }: McpResult): unknown {
  const allWords = content.every((part) => part.type === 'text');
  const words = allWords ? content.map((part) => part.text ?? '').join('\n') : content;
  const value = structuredContent === undefined ? words : structuredContent;
  if (isError) throw new Error(typeof value === 'string' ? value : JSON.stringify(value));
  return value;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
