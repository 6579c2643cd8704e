import { useQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { useClient } from '../../data/gateway.tsx';

/** Agents that are asked for what they have stored; the choice above the list has all of them. */
const ASKED_MAX = 20;

/**
 * The agent whose records are shown until somebody chooses another: the first that has any, or else the first.
 * Undefined until that is known, and an empty text where there are no agents.
 */
export function useFirstOwner(
  kind: 'goals' | 'memories' | 'plans' | 'knowledge',
  agents: readonly wire.Agent[] | undefined,
  isWanted: boolean,
): string | undefined {
  const client = useClient();
  const names = agents?.slice(0, ASKED_MAX).map(({ name }) => name);
  return useQuery({
    queryKey: ['first-owner', kind, names],
    enabled: isWanted && names !== undefined && kind !== 'knowledge',
    queryFn: async ({ signal }) => {
      if (kind === 'knowledge' || !names) return '';
      const found = await Promise.all(
        names.map((agent) => client[kind].list({ agent, limit: 1 }, { signal })),
      );
      return names[found.findIndex(({ records }) => records.length > 0)] ?? names[0] ?? '';
    },
  }).data;
}
