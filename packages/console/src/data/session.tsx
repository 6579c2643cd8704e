import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import { NotFoundError, type Session, type ToolgateClient, ToolgateError } from '@toolgate/client';
import { useEffect, useRef } from 'react';
import { useClient } from './gateway.tsx';
import { SESSION_KEY } from './query-client.ts';

export { SESSION_KEY };

/** A login link that did not sign anybody in: it was used before, has expired, or is none. */
export class LoginLinkError extends Error {
  constructor(cause: ToolgateError) {
    super(cause.message, { cause });
  }
}

/** Who is signed in. Signs in first if the address is a login link. */
export function useSession(): UseQueryResult<Session> {
  const client = useClient();
  const queries = useQueryClient();
  const session = useQuery({
    queryKey: SESSION_KEY,
    queryFn: () => openSession(client, codeIn(globalThis.location.hash)),
    staleTime: Number.POSITIVE_INFINITY,
    // The client has retried what may pass, and a code that was refused stays so.
    retry: false,
  });
  useEffect(() => {
    // A link that is opened in a tab of the console may change nothing but the fragment, which loads no page.
    const look = (): void => {
      if (codeIn(globalThis.location.hash) !== undefined)
        void queries.invalidateQueries({ queryKey: SESSION_KEY });
    };
    globalThis.addEventListener('hashchange', look);
    return () => globalThis.removeEventListener('hashchange', look);
  }, [queries]);
  const id = session.data?.id ?? undefined;
  const before = useRef(id);
  useEffect(() => {
    // Another session may be one of another project: nothing that the one before has read is kept.
    if (before.current !== undefined && before.current !== id)
      void queries.resetQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
    before.current = id ?? before.current;
  }, [id, queries]);
  return session;
}

async function openSession(client: ToolgateClient, code: string | undefined): Promise<Session> {
  if (code === undefined) return currentSession(client);
  try {
    const session = await client.sessions.signIn(code);
    removeLoginCode();
    return session;
  } catch (error) {
    // Without an answer the code may still count: it stays in the address for the next try.
    if (!(error instanceof ToolgateError) || error.status === undefined || error.status >= 500) throw error;
    removeLoginCode();
    // A link that was used before is fine for a browser that is signed in already.
    return currentSession(client).catch(() => Promise.reject(new LoginLinkError(error)));
  }
}

async function currentSession(client: ToolgateClient): Promise<Session> {
  try {
    return await client.sessions.current();
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    // A gateway from before sessions; it serves this page only if it asks for no key.
    return { kind: 'open', project: { id: '', name: 'default' }, operator: false };
  }
}

/** Takes the code out of the address, so that it is in no bookmark and on no screenshot. */
function removeLoginCode(): void {
  globalThis.history.replaceState(null, '', '/');
}

/** The code in a login link, or in what somebody has pasted: the link, its fragment, or the code alone. */
export function codeIn(text: string): string | undefined {
  const found = /(?:^|[#?&])code=([^&\s]+)/.exec(text.trim());
  return found?.[1];
}
