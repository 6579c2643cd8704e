import type { Fault, Problem } from './wire.js';

/** Any error of the gateway or a plugin. `code` is stable; the message is for people. */
export class ToolgateError extends Error {
  /**
   * The gateway's code (`NOT_FOUND`, `VALIDATION_FAILED`, …) or the client's own (`UNREACHABLE`, `ABORTED`,
   * …).
   */
  readonly code: string;
  /** The HTTP status, if the gateway answered. */
  readonly status: number | undefined;
  /** All problems of the request, each with a JSON pointer. */
  readonly errors: readonly Fault[];
  /** Whether a retry may succeed. */
  readonly retryable: boolean;
  /** How long the gateway asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The problem document of the response. */
  readonly problem: Problem | undefined;
  /** The gateway's id of the request, which its log has too. */
  readonly requestId: string | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.status = details.status;
    this.errors = details.errors ?? details.problem?.errors ?? [];
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs;
    this.problem = details.problem;
    this.requestId = details.requestId;
  }
}

/** Optional members of an error. */
export interface ErrorDetails {
  status?: number;
  errors?: readonly Fault[];
  retryable?: boolean;
  retryAfterMs?: number;
  problem?: Problem;
  requestId?: string;
  cause?: unknown;
}

/** 401 and 403: the key or the JWT does not give access. */
export class AccessError extends ToolgateError {}
/** 404: it does not exist, or you may not know that it does. */
export class NotFoundError extends ToolgateError {}
/**
 * 409: conflict. `problem.winner` is the winning receipt, or `problem.claim` the lease. 412 (`CHANGED`): the stored state is not
 * the expected one, such as an id that is taken.
 */
export class ConflictError extends ToolgateError {}
/**
 * 410: too late. `code` is the reason: `TIMEOUT`, `CANCELLED`, `SUPERSEDED`, `DENIED`; `DELETED` for a run or space that was
 * deleted; `PAST_RETENTION` for a cursor older than what is kept and `AHEAD_OF_LOG` for one of another log, such as before a
 * backup was restored, both with the state to start from in `problem.snapshot`.
 */
export class GoneError extends ToolgateError {}
/** 422: `errors` lists all problems. Also thrown before a request, by the client's own checks. */
export class ValidationError extends ToolgateError {}
/** 429: over the rate limit, a quota, or a budget (`code` is `BUDGET_EXCEEDED`, `problem.budget` tells which and until when). */
export class RateLimitedError extends ToolgateError {}
/** 5xx: nothing was done. */
export class UnavailableError extends ToolgateError {}
/** The gateway cannot be reached, or the connection broke. */
export class ConnectionError extends ToolgateError {}
/** The gateway's response cannot be read by this version of the client. */
export class ProtocolError extends ToolgateError {}
/** A tool exceeded its timeout. */
export class TimeoutError extends ToolgateError {}
/** The caller's signal fired. */
export class AbortedError extends ToolgateError {}
/** A plugin is malformed, conflicts with another, or could not be started. */
export class PluginError extends ToolgateError {}
/** A tool could not be executed on this client. */
export class ToolError extends ToolgateError {}

/** Codes of errors that are not the gateway's. */
export const CODES = {
  connection: 'UNREACHABLE',
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
  pluginUntrusted: 'PLUGIN_UNTRUSTED',
  toolUnknown: 'TOOL_UNKNOWN',
  toolArguments: 'TOOL_ARGUMENTS',
  validation: 'VALIDATION_FAILED',
  historyNotTaken: 'HISTORY_NOT_TAKEN',
  budgetExceeded: 'BUDGET_EXCEEDED',
} as const;

/** Statuses of requests that were not done and may be sent again. */
const RETRYABLE = new Set([408, 429, 502, 503, 504]);

/**
 * The error for an error response. Never throws: a response without a problem document is still an error with
 * a status.
 */
export async function errorOf(response: Response): Promise<ToolgateError> {
  const status = response.status;
  const problem = await problemOf(response);
  const code = problem?.code ?? CODES.http;
  const message = problem?.detail ?? `the gateway answered ${status} ${response.statusText}`.trim();
  const retryAfterMs = retryAfterOf(response.headers.get('retry-after'));
  // A budget begins anew at midnight or with the next month: nobody waits that long in a request.
  const retryable = isRetryable(status) && code !== CODES.budgetExceeded;
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const details: ErrorDetails = { status, problem, retryable, retryAfterMs, requestId };
  return new (classFor(status))(code, message, details);
}

/** The error for a problem document that came without a response. */
export function errorOfProblem(problem: Problem): ToolgateError {
  const { status, code, detail } = problem;
  return new (classFor(status))(code, detail, { status, problem, retryable: isRetryable(status) });
}

function isRetryable(status: number): boolean {
  return RETRYABLE.has(status);
}

function classFor(status: number): typeof ToolgateError {
  switch (status) {
    case 401:
    case 403:
      return AccessError;
    case 404:
      return NotFoundError;
    case 409:
    case 412:
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
