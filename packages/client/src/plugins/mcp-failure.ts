import { isRecord } from '../definition-rules.js';

/** What the failure of a call says about the call and the connection. */
export type Failure =
  /** The server answered: nothing is wrong with the connection. */
  | 'answer'
  /** The server has forgotten the session. It did not carry the call out. */
  | 'session'
  /** Nothing reached the server. */
  | 'unreachable'
  /** The connection broke, or the answer was none: whether the call was carried out is unknown. */
  | 'unknown';

/** Codes of the official packages for errors that they find themselves while the server is well. */
const OWN_FINDINGS: ReadonlySet<unknown> = new Set([
  'CAPABILITY_NOT_SUPPORTED',
  'INPUT_REQUIRED_ROUNDS_EXCEEDED',
  'INVALID_RESULT',
  'UNSUPPORTED_RESULT_TYPE',
]);
/** The highest code of JSON-RPC, for the server's own errors; the older package's code for a closed connection. */
const SERVER_ERROR = -32000;
const UNREACHABLE: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH']);

/** Sorts an error of the official packages. */
export function failureOf(error: unknown, connection: { hasSession: boolean; closed: boolean }): Failure {
  const { code, cause, data } = isRecord(error) ? error : ({} as Record<string, unknown>);
  const fromServer = typeof code === 'number' && code <= SERVER_ERROR;
  if (OWN_FINDINGS.has(code) || (fromServer && !(code === SERVER_ERROR && connection.closed)))
    return 'answer';
  const status = isRecord(data) && typeof data.status === 'number' ? data.status : code;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    // 404 by the specification, 400 by many servers.
    return connection.hasSession && (status === 404 || status === 400) ? 'session' : 'answer';
  }
  return isRecord(cause) && UNREACHABLE.has(cause.code) ? 'unreachable' : 'unknown';
}

/** What a server asked for that this program does not offer; `undefined` for other errors. */
export function missingInput(error: unknown): string | undefined {
  if (!isRecord(error) || error.code !== 'CAPABILITY_NOT_SUPPORTED' || !isRecord(error.data))
    return undefined;
  return typeof error.data.method === 'string' ? error.data.method : undefined;
}
