import { useMemo } from 'react';
import { useToolgateContext } from './context.js';
import { openApprovals } from './conversation.js';
import type { Approval } from './message.js';
import { useSpace } from './use-space.js';

/** The open approvals of a space, and the decisions on them. */
export interface Approvals {
  /** Oldest first; also those that somebody else has to decide on, whose `mayDecide` is false. */
  readonly approvals: readonly Approval[];
  /**
   * Approves a call; with `input`, that input replaces the model's. The gateway validates it again. `remember: false` makes a
   * yes that would stand for later calls too one for this call alone.
   */
  readonly approve: (
    approvalId: string,
    input?: unknown,
    options?: { readonly remember?: boolean },
  ) => Promise<void>;
  /** Rejects a call. The model reads the reason. */
  readonly reject: (approvalId: string, reason?: string) => Promise<void>;
}

/** Follows the open approvals of a space. */
export function useApprovals(spaceId: string | undefined): Approvals {
  const { client } = useToolgateContext('useApprovals');
  const space = useSpace(spaceId);
  const approvals = useMemo(() => openApprovals(space), [space]);
  return useMemo(
    () => ({
      approvals,
      approve: async (approvalId, input, options = {}) => {
        await client.approvals.decide(approvalId, {
          approved: true,
          ...(input !== undefined && { input }),
          ...options,
        });
      },
      reject: async (approvalId, reason) => {
        await client.approvals.decide(approvalId, { approved: false, ...(reason && { reason }) });
      },
    }),
    [client, approvals],
  );
}
