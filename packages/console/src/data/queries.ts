import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { useClient } from './gateway.tsx';

const INBOX_REFRESH_MS = 5_000;
const PAGE_MAX = 100;

/** The agents of the project. */
export function useAgents(): UseQueryResult<wire.Agent[]> {
  const client = useClient();
  return useQuery({ queryKey: ['agents'], queryFn: ({ signal }) => client.agents.list({ signal }) });
}

/** The tools that agents of the project can use. */
export function useTools(): UseQueryResult<wire.Tool[]> {
  const client = useClient();
  return useQuery({ queryKey: ['tools'], queryFn: ({ signal }) => client.tools.list({}, { signal }) });
}

/** What waits for a person: open approvals and questions of tools. */
export interface Inbox {
  readonly approvals: readonly wire.OpenApproval[];
  readonly questions: readonly wire.OpenQuestion[];
  /** Whether there are more than these. */
  readonly more: boolean;
}

/** The inbox; read again every few seconds, and whenever a run changes. */
export function useInbox(): UseQueryResult<Inbox> {
  const client = useClient();
  return useQuery({
    queryKey: ['inbox'],
    queryFn: async ({ signal }) => {
      const [approvals, questions] = await Promise.all([
        client.approvals.list({ limit: PAGE_MAX }, { signal }),
        client.questions.list({ limit: PAGE_MAX, signal }),
      ]);
      return {
        approvals: approvals.approvals,
        questions: questions.questions,
        more: Boolean(approvals.nextCursor || questions.nextCursor),
      };
    },
    refetchInterval: INBOX_REFRESH_MS,
  });
}
