import type { ToolExecutor } from './tool.js';

/** What `tools.serve` takes. */
export interface ServeOptions {
  /** What runs the calls, by tool name; beside the tools of the client's plugins. */
  tools?: Record<string, ToolExecutor<never> | { execute: ToolExecutor<never>; timeout?: number }>;
  /** Only tools of these names. */
  only?: string[];
  /** A name for this server; the client's own with something fresh unless said otherwise. */
  holder?: string;
  /** The `seq` to go on from; otherwise what is open now and what comes. */
  after?: number;
  /** At most so many at a time; 16. */
  concurrency?: number;
  /** Closes the server. */
  signal?: AbortSignal;
}

/** Executes the calls of a space until it is closed. */
export class ToolServer {
  /** Takes no more calls, gives back what it holds, and resolves when nothing is left. */
  async close(): Promise<void> {
    throw new Error('not yet');
  }
  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    throw new Error('not yet');
  }
  /** Resolves when it listens: calls from now on are seen. Rejects when it cannot. */
  async ready(): Promise<void> {
    throw new Error('not yet');
  }
  /** Resolves when it has ended; rejects with what ended it, unless that was `close`. */
  get done(): Promise<void> {
    throw new Error('not yet');
  }
}
