import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { NotFoundError, type Session, type ToolgateClient } from '@toolgate/client';
import { useClient } from './gateway.tsx';
import { SESSION_KEY } from './query-client.ts';

export { SESSION_KEY };

/** Who is signed in. Signs in first if the address is a login link. */
export function useSession(): UseQueryResult<Session> {
  const client = useClient();
  return useQuery({
    queryKey: SESSION_KEY,
    queryFn: () => openSession(client, takeLoginCode()),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

async function openSession(client: ToolgateClient, code: string | undefined): Promise<Session> {
  if (code === undefined) return currentSession(client);
  try {
    return await client.sessions.signIn(code);
  } catch (error) {
    // A link that was used before is fine for a browser that is signed in already.
    return currentSession(client).catch(() => Promise.reject(error));
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

/** The code of a login link, which is removed from the address: it counts once, and is nobody else's. */
function takeLoginCode(): string | undefined {
  const code = codeIn(globalThis.location.hash);
  if (code === undefined) return undefined;
  globalThis.history.replaceState(null, '', '/');
  return code;
}

/** The code in a login link, or in what somebody has pasted: the link, its fragment, or the code alone. */
export function codeIn(text: string): string | undefined {
  const found = /(?:^|[#?&])code=([^&\s]+)/.exec(text.trim());
  return found?.[1] === undefined ? undefined : decodeURIComponent(found[1]);
}
