import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { CircleX, EllipsisVertical, KeyRound, Pencil, RotateCw, Trash2, TriangleAlert } from 'lucide-react';
import { useState } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { DetailBody, DetailHead, Note } from '../../ui/detail.tsx';
import { Facts } from '../../ui/facts.tsx';
import { formatClock, formatExact, formatRelative } from '../../ui/format.ts';
import { JsonView } from '../../ui/json-view.tsx';
import { Menu } from '../../ui/menu.tsx';
import { useNow } from '../../ui/now.ts';
import { safeLink } from '../../ui/safe-link.ts';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './mcp.module.css';
import { ServerDialog } from './server-dialog.tsx';
import { ServerStatus } from './server-status.tsx';
import { ToolReview } from './tool-review.tsx';

const LOG_REFRESH_MS = 3_000;

/** One server: status, tools with their review, log and configuration. */
export function ServerDetail({ server }: { readonly server: wire.McpServer }) {
  const client = useClient();
  const queries = useQueryClient();
  const [search, setSearch] = useSearchParams();
  const restarting = useMutation({
    mutationFn: () => client.mcpServers.restart(server.name),
    onSuccess: async () => {
      toast(`${server.name} is started again`);
      await queries.invalidateQueries({ queryKey: ['mcp-servers'] });
    },
    onError: toastError,
  });
  const tab = search.get('tab') ?? 'tools';
  return (
    <>
      <DetailHead
        title={server.name}
        back="/mcp-servers"
        badges={<ServerStatus server={server} />}
        about={serverWords(server)}
        actions={
          <>
            <Button icon={<RotateCw />} busy={restarting.isPending} onClick={() => restarting.mutate()}>
              Restart
            </Button>
            {server.origin === 'project' && <More server={server} />}
          </>
        }
      />
      <Tabs
        label="MCP server"
        chosen={tab}
        onChoose={(id) => setSearch(id === 'tools' ? {} : { tab: id }, { replace: true })}
        tabs={[
          { id: 'tools', label: 'Tools', count: server.tools.length },
          { id: 'log', label: 'Log' },
          { id: 'config', label: 'Configuration' },
        ]}
      />
      <DetailBody>
        {tab === 'log' ? (
          <Log name={server.name} />
        ) : tab === 'config' ? (
          <Configuration server={server} />
        ) : (
          <>
            <Notices server={server} />
            {server.tools.length === 0 ? (
              <Empty icon={<TriangleAlert />} title="No tools are known yet">
                They are listed as soon as the server has been connected once.
              </Empty>
            ) : (
              server.tools.map((tool) => <ToolReview key={tool.tool} server={server.name} tool={tool} />)
            )}
          </>
        )}
      </DetailBody>
    </>
  );
}

function serverWords({ serverInfo, protocol }: wire.McpServer): string {
  const program = serverInfo && [serverInfo.name, serverInfo.version].filter(Boolean).join(' ');
  return [program, protocol && `MCP ${protocol}`].filter(Boolean).join(' · ');
}

function Notices({ server }: { readonly server: wire.McpServer }) {
  return (
    <>
      {server.needsSignIn && <SignIn name={server.name} />}
      {server.reason && (
        <Note tone="red" icon={<CircleX />}>
          {showControls(server.reason)}
          {server.nextTry && <NextTry time={server.nextTry} />}
        </Note>
      )}
      {server.warnings.map((warning) => (
        <Note key={warning} tone="amber" icon={<TriangleAlert />}>
          {showControls(warning)}
        </Note>
      ))}
    </>
  );
}

/** When the gateway connects by itself; a time that has passed says nothing. */
function NextTry({ time }: { readonly time: string }) {
  const now = useNow();
  if (Date.parse(time) <= now) return null;
  return (
    <p className={styles.nextTry} title={formatExact(time)}>
      Next try {formatRelative(time, now)}
    </p>
  );
}

/** Asks for a sign-in link and shows it: it is for one person, and opens in a tab of its own. */
function SignIn({ name }: { readonly name: string }) {
  const client = useClient();
  const asking = useMutation({ mutationFn: () => client.mcpServers.authorize(name), onError: toastError });
  const link = asking.data && safeLink(asking.data.authorizeUrl);
  return (
    <Note
      tone="amber"
      icon={<KeyRound />}
      actions={
        link ? (
          <a className={styles.link} href={link} target="_blank" rel="noopener noreferrer">
            Sign in at {new URL(link).host}
          </a>
        ) : (
          <Button size="small" busy={asking.isPending} onClick={() => asking.mutate()}>
            Get a sign-in link
          </Button>
        )
      }
    >
      The server asks for a person's sign-in. The tools are there as soon as you have signed in.
    </Note>
  );
}

function Log({ name }: { readonly name: string }) {
  const client = useClient();
  const { data, error, refetch } = useQuery({
    queryKey: ['mcp-log', name],
    queryFn: ({ signal }) => client.mcpServers.log(name, { signal }),
    refetchInterval: LOG_REFRESH_MS,
  });
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  if (data.length === 0)
    return (
      <Empty icon={<TriangleAlert />} title="The log is empty">
        What a program writes to its standard error is shown here, the last 200 lines of it.
      </Empty>
    );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
    <section className={styles.log} aria-label="Log" tabIndex={0}>
      {data.map(({ at, text }, index) => (
        <div key={index}>
          <time dateTime={at}>{formatClock(at)}</time>
          <span>{showControls(text)}</span>
        </div>
      ))}
    </section>
  );
}

function Configuration({ server }: { readonly server: wire.McpServer }) {
  return (
    <>
      <Facts
        rows={[
          ['Configured by', ORIGINS[server.origin] ?? server.origin],
          ['Instructions', server.instructions && showControls(server.instructions)],
        ]}
      />
      <div className={styles.config}>
        <JsonView value={server.config} open={3} label="Configuration" />
      </div>
    </>
  );
}

const ORIGINS: Readonly<Record<string, string>> = {
  settings: 'The settings file; it is changed there',
  project: 'This project',
  agent: 'An agent; it is changed there',
};

function More({ server }: { readonly server: wire.McpServer }) {
  const client = useClient();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [open, setOpen] = useState<'change' | 'remove'>();
  const removing = useMutation({
    mutationFn: () => client.mcpServers.remove(server.name),
    onSuccess: async () => {
      toast(`${server.name} is removed`);
      navigate('/mcp-servers');
      await queries.invalidateQueries({ queryKey: ['mcp-servers'] });
    },
    onError: toastError,
  });
  return (
    <>
      <Menu
        label="More"
        icon={<EllipsisVertical />}
        items={[
          { label: 'Change…', icon: <Pencil />, onSelect: () => setOpen('change') },
          { label: 'Remove…', icon: <Trash2 />, danger: true, onSelect: () => setOpen('remove') },
        ]}
      />
      {open === 'change' && (
        <ServerDialog server={server} onClose={() => setOpen(undefined)} onSaved={() => setOpen(undefined)} />
      )}
      {open === 'remove' && (
        <Confirm
          title={`Remove ${server.name}?`}
          action="Remove"
          busy={removing.isPending}
          onConfirm={() => removing.mutate()}
          onClose={() => setOpen(undefined)}
        >
          Its tools are gone from all agents, and calls under way are cut off. What was reviewed is forgotten.
        </Confirm>
      )}
    </>
  );
}
