import { QueryCache, QueryClient } from '@tanstack/react-query';
import { ToolgateError } from '@toolgate/client';
import { isSignedOut } from './describe-error.ts';

/** The query of who is signed in. */
export const SESSION_KEY = ['session'] as const;

const STALE_MS = 2_000;
const TRIES_MAX = 2;

/** The page's cache of what the gateway has answered. When it says that the session has ended, that is asked again. */
export function createQueryClient(): QueryClient {
  const queries: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, { queryKey }) => {
        if (isSignedOut(error) && queryKey[0] !== SESSION_KEY[0])
          void queries.invalidateQueries({ queryKey: SESSION_KEY });
      },
    }),
    defaultOptions: {
      queries: {
        staleTime: STALE_MS,
        refetchOnWindowFocus: true,
        // The client has retried what may pass; the rest is shown.
        retry: (count, error) => !(error instanceof ToolgateError) && count < TRIES_MAX,
        // Requests fail at once when the gateway is away, and are repeated when it is back.
        networkMode: 'always',
      },
      mutations: { networkMode: 'always' },
    },
  });
  return queries;
}
