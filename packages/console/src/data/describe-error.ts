import { AccessError, ConnectionError, ToolgateError } from '@toolgate/client';

/** An error in the words that the console shows. */
export interface ErrorDescription {
  readonly title: string;
  readonly detail: string;
  readonly code: string;
  readonly requestId: string | undefined;
}

/** Describes any thrown value. */
export function describeError(error: unknown): ErrorDescription {
  if (error instanceof ConnectionError)
    return {
      title: 'The gateway cannot be reached',
      detail: 'The page tries again by itself.',
      code: error.code,
      requestId: undefined,
    };
  if (error instanceof ToolgateError)
    return {
      title: TITLES[error.status ?? 0] ?? 'The gateway refused the request',
      detail: error.message,
      code: error.status === undefined ? error.code : `${error.status} ${error.code}`,
      requestId: error.requestId,
    };
  const detail = error instanceof Error ? error.message : String(error);
  return { title: 'Something went wrong in the console', detail, code: 'CONSOLE', requestId: undefined };
}

/** Whether the caller may not have what it asked for. */
export function isForbidden(error: unknown): boolean {
  return error instanceof AccessError && error.status === 403;
}

/** Whether nobody is signed in, or no longer. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof AccessError && error.status === 401;
}

const TITLES: Readonly<Record<number, string>> = {
  404: 'Not found',
  409: 'It has changed in the meantime',
  410: 'Too late',
  422: 'The gateway found mistakes',
  429: 'Too many requests',
  500: 'The gateway failed',
  503: 'The gateway is not ready',
};
