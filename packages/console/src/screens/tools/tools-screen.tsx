import type { wire } from '@toolgate/client';
import { ShieldAlert, Wrench } from 'lucide-react';
import { useMemo } from 'react';
import { Link, useRoute, useSearchParams } from 'wouter';
import { useTools } from '../../data/queries.ts';
import { LinkButton } from '../../ui/button.tsx';
import { SearchInput, Select } from '../../ui/field.tsx';
import { nameInAddress } from '../../ui/name-in-address.ts';
import { Page, Split } from '../../ui/page.tsx';
import { PlacementBadge } from '../../ui/placement.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { ReviewList, useHeldTools } from './review-list.tsx';
import { ToolDetail } from './tool-detail.tsx';
import styles from './tools.module.css';

const PLACEMENTS: readonly wire.Placement[] = ['server', 'client', 'plugin', 'mcp'];

/** One tool of the registry, with every agent that has it. */
export interface RegistryTool {
  readonly tool: wire.Tool;
  readonly agents: readonly string[];
}

/** The registry: `/tools` lists it, `/tools/{name}` shows one tool and a form to try it. */
export default function ToolsScreen() {
  const [, params] = useRoute('/tools/:name');
  const name = nameInAddress(params?.name);
  const tools = useTools();
  const registry = useMemo(() => byName(tools.data ?? []), [tools.data]);
  const [search] = useSearchParams();
  const isReview = search.get('view') === 'review';
  const { held } = useHeldTools();
  const chosen = registry.find(({ tool }) => tool.name === name);
  return (
    <Page
      title="Tools"
      description="Everything that agents of this project can call."
      layout="filled"
      actions={
        held.length > 0 && (
          <LinkButton href="/tools?view=review" icon={<ShieldAlert />}>
            {held.length === 1 ? '1 tool waits for a review' : `${held.length} tools wait for a review`}
          </LinkButton>
        )
      }
    >
      {tools.isPending ? (
        <Loading />
      ) : !tools.data ? (
        <ErrorState error={tools.error} retry={() => void tools.refetch()} />
      ) : registry.length === 0 && !isReview ? (
        <Empty
          icon={<Wrench />}
          title="No tools yet"
          actions={<LinkButton href="/agents">Open the agents</LinkButton>}
        >
          Tools come from agents’ configurations, plugins, MCP servers and the gateway itself.
        </Empty>
      ) : (
        <Split
          open={name !== undefined || isReview}
          list={<Registry registry={registry} chosen={name} />}
          detail={
            isReview ? (
              <ReviewList />
            ) : chosen ? (
              <ToolDetail key={chosen.tool.name} entry={chosen} />
            ) : (
              <Empty
                icon={<Wrench />}
                title={name ? `There is no tool ${name}` : 'Choose a tool'}
                actions={name && <LinkButton href="/tools">All tools</LinkButton>}
              >
                {name
                  ? 'It may have been removed, or belong to another project.'
                  : 'See what it takes, and try it without a model.'}
              </Empty>
            )
          }
        />
      )}
    </Page>
  );
}

function Registry({
  registry,
  chosen,
}: {
  readonly registry: readonly RegistryTool[];
  readonly chosen: string | undefined;
}) {
  const [search, setSearch] = useSearchParams();
  const text = search.get('text') ?? '';
  const placement = search.get('placement') ?? '';
  const source = search.get('source') ?? '';
  const set = (name: string, value: string): void =>
    setSearch(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  const sources = [...new Set(registry.flatMap(({ tool }) => tool.source ?? []))].sort();
  const words = text.toLowerCase();
  const shown = registry.filter(
    ({ tool }) =>
      (!placement || tool.placement === placement) &&
      (!source || tool.source === source) &&
      (!words || `${tool.name} ${tool.description} ${tool.category ?? ''}`.toLowerCase().includes(words)),
  );
  const own = new URLSearchParams(search);
  own.delete('view');
  const query = own.toString();
  return (
    <>
      <search className={styles.filters}>
        <SearchInput
          className={styles.search}
          label="Search tools"
          value={text}
          onChange={(event) => set('text', event.target.value)}
        />
        <Select
          aria-label="Placement"
          value={placement}
          onChange={(event) => set('placement', event.target.value)}
        >
          <option value="">Anywhere</option>
          {PLACEMENTS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Select>
        <Select aria-label="Source" value={source} onChange={(event) => set('source', event.target.value)}>
          <option value="">Any source</option>
          {sources.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Select>
      </search>
      <ul className={styles.list}>
        {shown.map(({ tool }) => (
          <li key={tool.name}>
            <Link
              href={`/tools/${encodeURIComponent(tool.name)}${query ? `?${query}` : ''}`}
              className={styles.item}
              aria-current={tool.name === chosen ? 'true' : undefined}
            >
              <span className={styles.name}>{tool.name}</span>
              <PlacementBadge placement={tool.placement} />
              <span className={styles.about}>{showControls(tool.description)}</span>
            </Link>
          </li>
        ))}
        {shown.length === 0 && <li className={styles.item}>No tool fits the filter.</li>}
      </ul>
    </>
  );
}

/** One entry per name: agents often share a tool. */
function byName(tools: readonly wire.Tool[]): RegistryTool[] {
  const found = new Map<string, { tool: wire.Tool; agents: string[] }>();
  for (const tool of tools) {
    const entry = found.get(tool.name) ?? { tool, agents: [] };
    found.set(tool.name, entry);
    if (tool.agent) entry.agents.push(tool.agent);
  }
  return [...found.values()].sort((a, b) => a.tool.name.localeCompare(b.tool.name));
}
