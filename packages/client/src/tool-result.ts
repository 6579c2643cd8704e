/** Codes of calls that gave no output, as events and models have them. A tool may use words of its own beside them. */
export const ToolErrorCode = {
  /** There is no such tool. */
  NOT_FOUND: 'NOT_FOUND',
  /** The arguments are not what the tool takes. */
  VALIDATION_FAILED: 'VALIDATION_FAILED',
  /** A tool that must have run before has not. */
  PREREQUISITES_NOT_MET: 'PREREQUISITES_NOT_MET',
  /** The agent was not granted what the tool needs. */
  PERMISSION_DENIED: 'PERMISSION_DENIED',
  /** The call has used up a limit. */
  LIMIT_EXCEEDED: 'LIMIT_EXCEEDED',
  /** There was no outcome in time. */
  TIMEOUT: 'TIMEOUT',
  /** The tool began and failed. */
  EXECUTION_FAILED: 'EXECUTION_FAILED',
} as const;
/** One of the named codes. */
export type ToolErrorCode = (typeof ToolErrorCode)[keyof typeof ToolErrorCode];

/** What a handler returns for a call that failed. The call is then stored as one that failed, with this code and message. */
export interface ErrorResult {
  success: false;
  error: string;
  code?: string;
  toolId?: string;
  /** More about the failure, for the model. */
  details?: Record<string, unknown>;
}

/** The result of a call that failed, to return from a handler. */
export function createErrorResult(
  toolId: string,
  code: ToolErrorCode | (string & {}),
  message: string,
  details?: Record<string, unknown>,
): ErrorResult {
  return { success: false, error: message, code, toolId, ...(details === undefined ? {} : { details }) };
}

/**
 * The error that a handler has returned instead of throwing it: `{ success: false, error: "…" }`. Without this such a call would
 * count as one that gave an output, and its success be confirmed aloud.
 */
export function returnedError(result: unknown): { message: string; code?: string } | undefined {
  if (typeof result !== 'object' || result === null) return undefined;
  const { success, error, code, details } = result as Record<string, unknown>;
  if (success !== false || typeof error !== 'string' || error === '') return undefined;
  const more = details === undefined || details === null ? '' : `: ${JSON.stringify(details)}`;
  return { message: error + more, ...(typeof code === 'string' && code !== '' ? { code } : {}) };
}
