import type { Fault, Problem } from './wire.js';

/** Anything that goes wrong with a gateway or a plugin. `code` is stable; the words are for people. */
export class ToolgateError extends Error {
  /** The gateway's code (`NOT_FOUND`, `VALIDATION_FAILED`, …) or one of ours (`CONNECTION`, `ABORTED`, …). */
  readonly code: string;
  /** The HTTP status, when the gateway answered. */
  readonly status: number | undefined;
  /** Everything that is wrong with what was sent, each with a JSON pointer. */
  readonly errors: readonly Fault[];
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** How long the gateway asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** What the gateway answered. */
  readonly problem: Problem | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.status = details.status;
    this.errors = details.errors ?? details.problem?.errors ?? [];
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs;
    this.problem = details.problem;
  }
}

/** What an error knows beside its code and its words. */
export interface ErrorDetails {
  status?: number;
  errors?: readonly Fault[];
  retryable?: boolean;
  retryAfterMs?: number;
  problem?: Problem;
  cause?: unknown;
}

/** 401 and 403: the key or the token does not open this. */
export class AccessError extends ToolgateError {}
/** 404: there is none, or it is not yours to know. */
export class NotFoundError extends ToolgateError {}
/** 409: something else holds. `problem.winner` or `problem.claim` says what. */
export class ConflictError extends ToolgateError {}
/** 410: too late. `code` is the reason: `TIMEOUT`, `CANCELLED`, `SUPERSEDED`, `DENIED`. */
export class GoneError extends ToolgateError {}
/** 422: `errors` says everything that is wrong. Also thrown before a request, by the client's own checks. */
export class ValidationError extends ToolgateError {}
/** 429: too many requests. */
export class RateLimitedError extends ToolgateError {}
/** 5xx: nothing was done. */
export class UnavailableError extends ToolgateError {}
/** The gateway was not reached, or the connection broke. */
export class ConnectionError extends ToolgateError {}
/** The gateway said something that this client does not understand. */
export class ProtocolError extends ToolgateError {}
/** A tool took longer than it may. */
export class TimeoutError extends ToolgateError {}
/** The caller's signal fired. */
export class AbortedError extends ToolgateError {}
/** A plugin is malformed, in conflict with another, or failed to start. */
export class PluginError extends ToolgateError {}
/** A tool could not be run here. */
export class ToolError extends ToolgateError {}

/** Codes that are not the gateway's. */
export const CODES = {
  connection: 'CONNECTION',
  aborted: 'ABORTED',
  timeout: 'TIMEOUT',
  protocol: 'PROTOCOL',
  http: 'HTTP',
  pluginInvalid: 'PLUGIN_INVALID',
  pluginConflict: 'PLUGIN_CONFLICT',
  pluginUnknown: 'PLUGIN_UNKNOWN',
  pluginDependency: 'PLUGIN_DEPENDENCY',
  pluginEngine: 'PLUGIN_ENGINE',
  pluginFailed: 'PLUGIN_FAILED',
  toolUnknown: 'TOOL_UNKNOWN',
  toolArguments: 'TOOL_ARGUMENTS',
  validation: 'VALIDATION_FAILED',
} as const;

/** Reads a refusal. Never throws: an answer that is no problem document is still an error with a status. */
export async function errorOf(response: Response): Promise<ToolgateError> {
  const status = response.status;
  const problem = await problemOf(response);
  const code = problem?.code ?? CODES.http;
  const words = problem?.detail ?? `the gateway answered ${status} ${response.statusText}`.trim();
  const retryAfterMs = retryAfterOf(response.headers.get('retry-after'));
  const retryable = status === 429 || status === 503 || status === 408 || status === 502 || status === 504;
  const details: ErrorDetails = { status, problem, retryable, retryAfterMs };
  return new (classFor(status))(code, words, details);
}

function classFor(status: number): typeof ToolgateError {
  switch (status) {
    case 401:
    case 403:
      return AccessError;
    case 404:
      return NotFoundError;
    case 409:
      return ConflictError;
    case 410:
      return GoneError;
    case 422:
      return ValidationError;
    case 429:
      return RateLimitedError;
    default:
      return status >= 500 ? UnavailableError : ToolgateError;
  }
}

async function problemOf(response: Response): Promise<Problem | undefined> {
  try {
    const body: unknown = await response.json();
    return typeof body === 'object' && body !== null && 'code' in body ? (body as Problem) : undefined;
  } catch {
    return undefined;
  }
}

function retryAfterOf(header: string | null): number | undefined {
  const seconds = Number(header);
  return header !== null && Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}
