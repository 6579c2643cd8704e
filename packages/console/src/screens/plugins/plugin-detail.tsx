import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Ban, CircleX, EllipsisVertical, RotateCcw, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { DetailBody, DetailHead, Note } from '../../ui/detail.tsx';
import { Facts } from '../../ui/facts.tsx';
import { formatBytes } from '../../ui/format.ts';
import { Menu } from '../../ui/menu.tsx';
import { Section } from '../../ui/page.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { Permissions } from './permissions.tsx';
import styles from './plugins.module.css';
import { TrustBadge } from './trust-badge.tsx';

/** One plugin: who signed it, what it may do, its tools, and versions to go back to. */
export function PluginDetail({ plugin }: { readonly plugin: wire.Plugin }) {
  const { id, current, running, stoppedBecause, otherVersions } = plugin;
  return (
    <>
      <DetailHead
        title={showControls(current.name)}
        back="/plugins"
        badges={<TrustBadge verification={current.verification} />}
        about={`${id} ${current.version}`}
        actions={<More plugin={plugin} />}
      />
      <DetailBody>
        {!running && (
          <Note tone="red" icon={<CircleX />}>
            Its tools are not offered: {stoppedBecause ?? 'it is stopped'}
          </Note>
        )}
        <Section title="What it may do">
          <Permissions permissions={current.permissions} />
        </Section>
        <Section title="Tools">
          <ul className={styles.tools}>
            {current.tools.map((tool) => (
              <li key={tool}>
                <Link href={`/tools/${encodeURIComponent(tool)}`}>{tool}</Link>
              </li>
            ))}
          </ul>
        </Section>
        <Section title="Package">
          <Facts
            rows={[
              ['Installed', <RelativeTime key="time" time={plugin.installedAt} />],
              ['Signed by', current.verification.curator ?? 'nobody'],
              ['Signature', current.verification.reason],
              ['From', current.sourceUrl && showControls(current.sourceUrl)],
              [
                'Needs',
                Object.entries(current.dependencies)
                  .map((pair) => pair.join(' '))
                  .join(', '),
              ],
              ['Gateway', current.engine],
              ['Size', formatBytes(current.bytes)],
              ['Hash', <code key="hash">{current.packageHash}</code>],
            ]}
          />
        </Section>
        {otherVersions.length > 0 && <Versions plugin={plugin} />}
        <SourceCode plugin={plugin} />
      </DetailBody>
    </>
  );
}

function Versions({ plugin }: { readonly plugin: wire.Plugin }) {
  const client = useClient();
  const queries = useQueryClient();
  const rolling = useMutation({
    mutationFn: (version: wire.PluginPackage) =>
      client.installedPlugins.rollBack(plugin.id, version.packageHash),
    onSuccess: async (_, { version }) => {
      toast(`${plugin.current.name} ${version} runs again`);
      await queries.invalidateQueries({ queryKey: ['plugins'] });
      await queries.invalidateQueries({ queryKey: ['tools'] });
    },
    onError: toastError,
  });
  return (
    <Section title="Other versions">
      <Table
        label="Other versions"
        rows={plugin.otherVersions}
        rowKey={({ packageHash }) => packageHash}
        columns={[
          { title: 'Version', cell: ({ version }) => version },
          { title: 'Signed', cell: ({ verification }) => <TrustBadge verification={verification} /> },
          { title: 'Stored', cell: ({ addedAt }) => <RelativeTime time={addedAt} /> },
          {
            title: 'Roll back',
            quiet: true,
            end: true,
            cell: (version) => (
              <Button
                size="small"
                icon={<RotateCcw />}
                busy={rolling.isPending && rolling.variables === version}
                disabled={Boolean(version.revoked)}
                onClick={() => rolling.mutate(version)}
              >
                {version.revoked ? 'Revoked' : 'Go back to it'}
              </Button>
            ),
          },
        ]}
      />
    </Section>
  );
}

/** The code of the tools, read when somebody asks for it. */
function SourceCode({ plugin }: { readonly plugin: wire.Plugin }) {
  const client = useClient();
  const [isOpen, setOpen] = useState(false);
  const { data } = useQuery({
    queryKey: ['plugin-package', plugin.current.packageHash],
    queryFn: ({ signal }) => client.installedPlugins.package(plugin.id, { signal }),
    enabled: isOpen,
  });
  const tools = (data?.tools ?? []) as { name: string; executorCode?: string }[];
  return (
    <Section
      title="Code"
      actions={
        <Button size="small" variant="ghost" onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide' : 'Show'}
        </Button>
      }
    >
      {isOpen &&
        tools.map(({ name, executorCode }) => (
          <div key={name}>
            <h3>{name}</h3>
            <CodeBlock text={executorCode ?? ''} language="JavaScript" />
          </div>
        ))}
    </Section>
  );
}

function More({ plugin }: { readonly plugin: wire.Plugin }) {
  const client = useClient();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [asked, setAsked] = useState<'remove' | 'revoke'>();
  const ending = useMutation({
    mutationFn: async (how: 'remove' | 'revoke') => {
      if (how === 'remove') await client.installedPlugins.remove(plugin.id);
      else await client.installedPlugins.revoke({ packageHash: plugin.current.packageHash });
    },
    onSuccess: async (_, how) => {
      toast(how === 'remove' ? `${plugin.current.name} is removed` : `${plugin.current.name} is revoked`);
      setAsked(undefined);
      if (how === 'remove') navigate('/plugins');
      await queries.invalidateQueries({ queryKey: ['plugins'] });
    },
    onError: toastError,
  });
  return (
    <>
      <Menu
        label="More"
        icon={<EllipsisVertical />}
        items={[
          { label: 'Revoke this version…', icon: <Ban />, danger: true, onSelect: () => setAsked('revoke') },
          { label: 'Remove…', icon: <Trash2 />, danger: true, onSelect: () => setAsked('remove') },
        ]}
      />
      {asked && (
        <Confirm
          title={asked === 'remove' ? `Remove ${plugin.current.name}?` : `Revoke ${plugin.current.version}?`}
          action={asked === 'remove' ? 'Remove' : 'Revoke'}
          busy={ending.isPending}
          onConfirm={() => ending.mutate(asked)}
          onClose={() => setAsked(undefined)}
        >
          {asked === 'remove'
            ? 'Agents lose its tools. Runs under way keep them until they end.'
            : 'This package never runs again in this project; calls under way are cut off. It cannot be undone.'}
        </Confirm>
      )}
    </>
  );
}
