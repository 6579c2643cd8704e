import type { EntityId, ProjectId, RunId, RunSummary, Time } from './wire.js';

/** Who is asking. */
export interface Session {
  /** `open`: the gateway runs without authentication, and there is nothing to sign in to. */
  kind: 'session' | 'key' | 'open';
  id?: string | null;
  project: { id: ProjectId; name: string };
  /** Whether it may manage projects. */
  operator: boolean;
  /** To be sent with every change; absent where none is needed. */
  csrfToken?: string | null;
  createdAt?: Time | null;
  lastUsedAt?: Time | null;
  expiresAt?: Time | null;
}

/** The sessions of a project. */
export interface SessionList {
  sessions: {
    id: string;
    createdAt: Time;
    lastUsedAt: Time;
    expiresAt: Time;
    operator: boolean;
    userAgent?: string | null;
    /** Whether it is the session that asks. */
    current: boolean;
  }[];
}

/** A run's row, as backends see it. */
export interface RunRow extends RunSummary {
  /** The run at the top of its tree. */
  rootId?: RunId | null;
  /** The user that it is for. */
  userId?: EntityId | null;
  /** The beginning of its first message. */
  title?: string | null;
  /** Tokens that it has used. */
  tokens?: number | null;
}

/** A page of runs, newest first. */
export interface RunRows {
  runs: RunRow[];
  nextCursor?: RunId | null;
}

/** A run with all its child runs. */
export interface RunTree {
  /** The root first, then by creation. */
  runs: RunRow[];
  /** Whether there are more than these. */
  truncated: boolean;
}

/** The revisions of an agent, newest first. */
export interface RevisionList {
  revisions: { revision: number; createdAt: Time; removed?: boolean }[];
  nextCursor?: number | null;
}

/** What a server's process wrote to its standard error. */
export interface McpLog {
  lines: { at: Time; text: string }[];
}

/** One hour of the overview, by when its runs were created. */
export interface OverviewHour {
  start: Time;
  started: number;
  completed: number;
  failed: number;
  cancelled: number;
  tokens: number;
}

/** How a project's runs and tools are doing. */
export interface Overview {
  /** Open runs by status. */
  runs: Record<'queued' | 'running' | 'waiting_tool' | 'waiting_approval' | 'waiting_time', number>;
  /** Runs that wait for a client, and for a person. */
  waiting: { calls: number; approvals: number };
  /** The last 24 hours, oldest first. */
  hours: OverviewHour[];
  tools: {
    since: Time;
    calls: number;
    failed: number;
    failures: Record<string, number>;
    latencyMs?: { p50: number; p90: number; p99: number } | null;
  };
  health: { store: string; bus: string; sandboxMissing: string[]; version: string };
}

/** Prices of models. */
export interface Prices {
  currency: string;
  /** By `provider:name`, or the name alone; per million tokens. */
  models: Record<string, { input: number; output: number; cachedInput?: number | null }>;
}
