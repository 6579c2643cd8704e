import type { wire } from '@toolgate/client';
import { CircleCheck, CircleDashed, CircleX, KeyRound, LoaderCircle } from 'lucide-react';
import { Badge } from '../../ui/badge.tsx';

/** Where the connection to a server stands. */
export function ServerStatus({ server }: { readonly server: wire.McpServer }) {
  if (server.needsSignIn)
    return (
      <Badge tone="amber" icon={<KeyRound />}>
        Needs sign-in
      </Badge>
    );
  switch (server.status) {
    case 'ready':
      return (
        <Badge tone="green" icon={<CircleCheck />}>
          Ready
        </Badge>
      );
    case 'connecting':
      return (
        <Badge tone="blue" icon={<LoaderCircle />} turning>
          Connecting
        </Badge>
      );
    case 'failed':
      return (
        <Badge tone="red" icon={<CircleX />}>
          Failed
        </Badge>
      );
    default:
      return (
        <Badge icon={<CircleDashed />} title="It is connected when a tool is needed">
          Idle
        </Badge>
      );
  }
}
