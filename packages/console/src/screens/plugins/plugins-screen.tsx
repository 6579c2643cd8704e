import { useQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Blocks, Code, Download, ShieldCheck } from 'lucide-react';
import { useLocation, useRoute } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { LinkButton } from '../../ui/button.tsx';
import { nameInAddress } from '../../ui/name-in-address.ts';
import { Page, Split } from '../../ui/page.tsx';
import { Rows } from '../../ui/rows.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Curators } from './curators.tsx';
import { InstallDialog } from './install-dialog.tsx';
import { PluginDetail } from './plugin-detail.tsx';
import { PluginEditor } from './plugin-editor.tsx';
import { TrustBadge } from './trust-badge.tsx';

/** Plugins: the list, one of them, `/plugins/install`, `/plugins/curators` and, in development mode, `/plugins/write`. */
export default function PluginsScreen() {
  const client = useClient();
  const [, params] = useRoute('/plugins/:id');
  const [, navigate] = useLocation();
  const place = nameInAddress(params?.id);
  const { data, error, refetch } = useQuery({
    queryKey: ['plugins'],
    queryFn: ({ signal }) => client.installedPlugins.list({ signal }),
  });
  const isDevelopment = data?.mode === 'development';
  const install = (
    <LinkButton variant="primary" icon={<Download />} href="/plugins/install">
      Install
    </LinkButton>
  );
  return (
    <Page
      title={
        <>
          Plugins
          {isDevelopment && (
            <Badge tone="amber" title="Unsigned plugins run too">
              Development mode
            </Badge>
          )}
        </>
      }
      layout="filled"
      actions={
        <>
          {isDevelopment && (
            <LinkButton icon={<Code />} href="/plugins/write">
              Write one
            </LinkButton>
          )}
          <LinkButton icon={<ShieldCheck />} href="/plugins/curators">
            Curators
          </LinkButton>
          {install}
        </>
      }
    >
      <Split
        open={place !== undefined && place !== 'install'}
        list={
          error && !data ? (
            <ErrorState error={error} retry={() => void refetch()} />
          ) : !data ? (
            <Loading />
          ) : data.plugins.length === 0 ? (
            <Empty icon={<Blocks />} title="No plugins yet" actions={install}>
              A plugin is one JSON document with tools and their code, which runs in a sandbox with the
              permissions that you have reviewed.
            </Empty>
          ) : (
            <Rows label="Plugins" chosen={place} rows={data.plugins.map(rowOf)} />
          )
        }
        detail={
          place === 'curators' ? (
            <Curators />
          ) : place === 'write' ? (
            <PluginEditor />
          ) : (
            <Chosen id={place} plugins={data?.plugins} />
          )
        }
      />
      {place === 'install' && (
        <InstallDialog
          onClose={() => navigate('/plugins')}
          onInstalled={(id) => navigate(`/plugins/${encodeURIComponent(id)}`)}
        />
      )}
    </Page>
  );
}

function Chosen({
  id,
  plugins,
}: {
  readonly id: string | undefined;
  readonly plugins: wire.Plugin[] | undefined;
}) {
  const plugin = plugins?.find((one) => one.id === id);
  if (plugin) return <PluginDetail key={plugin.id} plugin={plugin} />;
  const isUnknown = id !== undefined && id !== 'install' && plugins !== undefined;
  return (
    <Empty
      icon={<Blocks />}
      title={isUnknown ? `There is no plugin "${id}"` : 'No plugin chosen'}
      actions={isUnknown && <LinkButton href="/plugins">All plugins</LinkButton>}
    >
      Choose a plugin to see who signed it, what it may do, and its versions.
    </Empty>
  );
}

function rowOf({ id, running, current }: wire.Plugin) {
  return {
    id,
    href: `/plugins/${encodeURIComponent(id)}`,
    title: current.name,
    about: `${current.version} · ${current.tools.join(', ')}`,
    aside: (
      <>
        {!running && <Badge tone="red">Stopped</Badge>}
        <TrustBadge verification={current.verification} />
      </>
    ),
  };
}
