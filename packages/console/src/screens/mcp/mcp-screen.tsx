import { useQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Plug, Plus } from 'lucide-react';
import { useState } from 'react';
import { useLocation, useRoute } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button, LinkButton } from '../../ui/button.tsx';
import { nameInAddress } from '../../ui/name-in-address.ts';
import { Page, Split } from '../../ui/page.tsx';
import { Rows } from '../../ui/rows.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { ServerDetail } from './server-detail.tsx';
import { ServerDialog } from './server-dialog.tsx';
import { ServerStatus } from './server-status.tsx';

const REFRESH_MS = 4_000;

/** MCP servers: `/mcp-servers` is the list, `/mcp-servers/{name}` one of them beside it. */
export default function McpScreen() {
  const client = useClient();
  const [, params] = useRoute('/mcp-servers/:name');
  const [, navigate] = useLocation();
  const [isAdding, setAdding] = useState(false);
  const name = nameInAddress(params?.name);
  const { data, error, refetch } = useQuery({
    queryKey: ['mcp-servers'],
    queryFn: ({ signal }) => client.mcpServers.list({ signal }),
    refetchInterval: REFRESH_MS,
  });
  const add = (
    <Button variant="primary" icon={<Plus />} onClick={() => setAdding(true)}>
      Add a server
    </Button>
  );
  const server = data?.find((one) => one.name === name);
  return (
    <Page title="MCP servers" layout="filled" actions={data && data.length > 0 && add}>
      <Split
        open={name !== undefined}
        list={
          error && !data ? (
            <ErrorState error={error} retry={() => void refetch()} />
          ) : !data ? (
            <Loading />
          ) : data.length === 0 ? (
            <Empty icon={<Plug />} title="No MCP servers yet" actions={add}>
              The tools of an MCP server become tools of your agents: a program on this machine, or a server
              at an address.
            </Empty>
          ) : (
            <Rows label="MCP servers" chosen={name} rows={data.map(rowOf)} />
          )
        }
        detail={
          server ? (
            <ServerDetail key={server.name} server={server} />
          ) : name !== undefined ? (
            data ? (
              <Empty
                icon={<Plug />}
                title={`There is no server "${name}"`}
                actions={<LinkButton href="/mcp-servers">All servers</LinkButton>}
              />
            ) : (
              <Loading />
            )
          ) : (
            <Empty icon={<Plug />} title="No server chosen">
              Choose a server to see its status, its tools and its log.
            </Empty>
          )
        }
      />
      {isAdding && (
        <ServerDialog
          onClose={() => setAdding(false)}
          onSaved={(saved) => {
            setAdding(false);
            navigate(`/mcp-servers/${encodeURIComponent(saved)}`);
          }}
        />
      )}
    </Page>
  );
}

function rowOf(server: wire.McpServer) {
  const { name, tools, held, config } = server;
  return {
    id: name,
    href: `/mcp-servers/${encodeURIComponent(name)}`,
    title: name,
    about: `${tools.length === 1 ? '1 tool' : `${tools.length} tools`} · ${config.url ?? config.command ?? ''}`,
    aside: (
      <>
        {held > 0 && <Badge tone="amber">{held} held</Badge>}
        <ServerStatus server={server} />
      </>
    ),
  };
}
