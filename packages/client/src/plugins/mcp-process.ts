import type { ChildProcess, spawn } from 'node:child_process';

/** How long a server may take to end after its input has ended, and again after SIGTERM. */
const GRACE_MS = 2000;
/** Longest line of a server. */
const LINE_LENGTH_MAX = 10 * 1024 * 1024;

/** Node's `spawn`. */
export type Spawn = typeof spawn;

/** A command to start. */
export interface ProcessParameters {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd?: string;
}

/** Processes that run, so that they end with this one. */
const running = new Set<McpProcess>();
let endsWithUs = false;

/**
 * A server in a child process, as a transport of the official clients: one JSON message per line. It is the leader of a
 * process group of its own, and everything in the group ends with it: `npx` and `uvx` start the server as a grandchild.
 * For systems with process groups, which Windows is not.
 */
export class McpProcess {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: unknown) => void;
  /** Together with `pid` the mark by which the official client knows a child process. */
  readonly stderr = null;
  readonly #parameters: ProcessParameters;
  readonly #spawn: Spawn;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #line = '';

  constructor(parameters: ProcessParameters, start: Spawn) {
    this.#parameters = parameters;
    this.#spawn = start;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#parameters;
    const child = this.#spawn(command, args, {
      env,
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once('close', () => {
        running.delete(this);
        resolve();
        this.onclose?.();
      });
    });
    child.once('exit', () => {
      // Those that it has started hold its output open, and `close` comes when nobody does.
      this.#signal('SIGKILL');
      const timer = setTimeout(() => child.stdout?.destroy(), GRACE_MS);
      child.once('close', () => clearTimeout(timer));
    });
    child.stdin?.on('error', (error) => this.onerror?.(error));
    child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    running.add(this);
    if (!endsWithUs) process.once('exit', endAll);
    endsWithUs = true;
  }

  send(message: unknown): Promise<void> {
    const stdin = this.#child?.stdin;
    return new Promise((resolve, reject) => {
      if (!stdin?.writable) return reject(new Error('the process of the server has ended'));
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Ends the input, then asks the group to end, then kills it. Resolves when nothing of it is left. */
  async close(): Promise<void> {
    // It could not be started.
    if (this.#child?.pid === undefined) return;
    this.#child.stdin?.end();
    if (await this.#hasEndedWithin(GRACE_MS)) return;
    this.#signal('SIGTERM');
    if (await this.#hasEndedWithin(GRACE_MS)) return;
    this.#signal('SIGKILL');
    await this.#ended;
  }

  /** Kills the group at once. */
  kill(): void {
    this.#signal('SIGKILL');
  }

  async #hasEndedWithin(ms: number): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), ms);
    });
    const ended = await Promise.race([this.#ended.then(() => true), late]);
    clearTimeout(timer);
    return ended;
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // Nobody is left in the group.
    }
  }

  #read(text: string): void {
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop() ?? '';
    for (const line of lines) this.#take(line);
    if (this.#line.length > LINE_LENGTH_MAX) {
      this.onerror?.(new Error(`the server sent a line of more than ${LINE_LENGTH_MAX} characters`));
      this.kill();
    }
  }

  #take(line: string): void {
    if (line.trim() === '') return;
    try {
      this.onmessage?.(JSON.parse(line));
    } catch (error) {
      // Some servers log to their output; what is no message is passed over.
      this.onerror?.(error as Error);
    }
  }
}

function endAll(): void {
  for (const one of running) one.kill();
}
