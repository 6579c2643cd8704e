import type { wire } from '@toolgate/client';
import { Blocks, MonitorSmartphone, Plug, Server } from 'lucide-react';
import type { ReactNode } from 'react';
import { Badge } from './badge.tsx';

const LOOKS: Readonly<Record<wire.Placement, { word: string; title: string; icon: ReactNode }>> = {
  server: { word: 'Server', title: 'Runs in the gateway', icon: <Server /> },
  plugin: { word: 'Plugin', title: 'Runs in the sandbox', icon: <Blocks /> },
  mcp: { word: 'MCP', title: 'Runs on an MCP server', icon: <Plug /> },
  client: { word: 'Client', title: 'Runs where the conversation is held', icon: <MonitorSmartphone /> },
};

/** Where a tool runs, in a word. */
export function placementWord(placement: wire.Placement): string {
  return LOOKS[placement]?.word.toLowerCase() ?? placement;
}

/** Where a tool runs. */
export function PlacementBadge({ placement }: { readonly placement: wire.Placement }) {
  const look = LOOKS[placement];
  if (!look) return <Badge>{placement}</Badge>;
  return (
    <Badge icon={look.icon} title={look.title}>
      {look.word}
    </Badge>
  );
}
