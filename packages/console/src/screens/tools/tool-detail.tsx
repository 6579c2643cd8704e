import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, ShieldCheck, TriangleAlert } from 'lucide-react';
import { lazy, type ReactNode, Suspense } from 'react';
import { Link } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { LinkButton } from '../../ui/button.tsx';
import { formatCount, formatDuration } from '../../ui/format.ts';
import { JsonView } from '../../ui/json-view.tsx';
import { Section } from '../../ui/page.tsx';
import { PlacementBadge } from '../../ui/placement.tsx';
import { Loading } from '../../ui/states.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './tools.module.css';
import type { RegistryTool } from './tools-screen.tsx';

const TryForm = lazy(() => import('./try-form.tsx').then(({ TryForm: form }) => ({ default: form })));

/** A tool: where it comes from, how it does, what it takes, and a form to try it. */
export function ToolDetail({ entry: { tool, agents } }: { readonly entry: RegistryTool }) {
  return (
    <div className={styles.detail}>
      <div className={styles.back}>
        <LinkButton href="/tools" size="small" variant="ghost" icon={<ArrowLeft />}>
          Tools
        </LinkButton>
      </div>
      <div className={styles.head}>
        <div className={styles.titles}>
          <h2>{tool.name}</h2>
          <PlacementBadge placement={tool.placement} />
          {tool.source && <Badge>{tool.source}</Badge>}
          {tool.category && <Badge tone="violet">{tool.category}</Badge>}
          {tool.version && <Badge>version {tool.version}</Badge>}
          {tool.plugin && (
            <Badge
              tone={tool.plugin.verification === 'verified' ? 'green' : 'amber'}
              icon={tool.plugin.verification === 'verified' ? <ShieldCheck /> : <TriangleAlert />}
            >
              {tool.plugin.id} {tool.plugin.version}, {tool.plugin.verification}
            </Badge>
          )}
        </div>
        <p className={styles.description}>{showControls(tool.description)}</p>
        {tool.deprecated && <p className={styles.warning}>Deprecated: {showControls(tool.deprecated)}</p>}
        <div className={styles.row}>
          {agents.map((agent) => (
            <Link key={agent} href={`/agents/${agent}`}>
              <Badge tone="accent">{agent}</Badge>
            </Link>
          ))}
          {tool.permissions?.map((permission) => (
            <Badge key={permission} tone="amber" title="The agent must have been granted it">
              needs {permission}
            </Badge>
          ))}
        </div>
      </div>
      <Usage name={tool.name} />
      <div className={styles.columns}>
        <Section title="Try it">
          <Suspense fallback={<Loading rows={4} />}>
            <TryForm tool={tool} agents={agents} />
          </Suspense>
        </Section>
        <Section title="Definition">
          <JsonView value={tool.parameters} open={3} label="Parameters" />
          {(tool.triggers?.length ?? 0) > 0 && (
            <p className={styles.hint}>Suggested by the words: {tool.triggers?.join(', ')}</p>
          )}
        </Section>
      </div>
    </div>
  );
}

function Usage({ name }: { readonly name: string }) {
  const client = useClient();
  const { data } = useQuery({
    queryKey: ['tool-usage', name],
    queryFn: ({ signal }) => client.tools.usage(name, { signal }),
  });
  if (!data) return null;
  const codes = Object.entries(data.failures as Record<string, number>).sort(([, a], [, b]) => b - a);
  return (
    <dl className={styles.figures}>
      <Figure name="Calls">{formatCount(data.calls)}</Figure>
      <Figure name="Failed">
        {formatCount(data.failed)}
        {data.calls > 0 && data.failed > 0 && ` (${Math.round((data.failed / data.calls) * 100)} %)`}
      </Figure>
      {codes[0] && <Figure name="Most often">{codes[0][0]}</Figure>}
      <Figure name="Half within">{data.latencyMs ? formatDuration(data.latencyMs.p50) : '–'}</Figure>
      <Figure name="90 % within">{data.latencyMs ? formatDuration(data.latencyMs.p90) : '–'}</Figure>
      <Figure name="99 % within">{data.latencyMs ? formatDuration(data.latencyMs.p99) : '–'}</Figure>
    </dl>
  );
}

function Figure({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className={styles.figure}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
