import { useSearchParams } from 'wouter';
import { useAgents } from '../../data/queries.ts';
import { Input, Select } from '../../ui/field.tsx';
import { Page } from '../../ui/page.tsx';
import { Loading } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { KnowledgeView } from './knowledge-view.tsx';
import { RecordList } from './record-list.tsx';
import { ownerOf, type RecordKind, type Scope } from './record-owner.ts';
import styles from './state.module.css';
import { useFirstOwner } from './use-first-owner.ts';

const KINDS = [
  { id: 'goals', label: 'Goals' },
  { id: 'memories', label: 'Memories' },
  { id: 'plans', label: 'Plans' },
  { id: 'knowledge', label: 'Knowledge' },
] as const;
type Kind = (typeof KINDS)[number]['id'];

/** What agents have stored: goals, memories, plans, and the documents that they search. */
export default function StateScreen() {
  const [search, setSearch] = useSearchParams();
  const agents = useAgents().data;
  const kind: Kind = KINDS.find(({ id }) => id === search.get('kind'))?.id ?? 'goals';
  const scope = (kind === 'memories' ? (search.get('scope') ?? 'agent') : 'agent') as Scope;
  const isOfAgent = scope === 'agent' && kind !== 'knowledge';
  const first = useFirstOwner(kind, agents, isOfAgent && search.get('of') === null);
  const who = search.get('of') ?? (isOfAgent ? (first ?? '') : '');
  const change = (part: Record<string, string>): void =>
    setSearch({ kind, ...(kind === 'memories' && { scope }), of: who, ...part }, { replace: true });
  return (
    <Page title="State" description="What agents have stored, and what they can look up" layout="filled">
      <Tabs
        label="Kind"
        tabs={KINDS}
        chosen={kind}
        onChoose={(id) => setSearch({ kind: id }, { replace: true })}
      />
      <div className={styles.filters}>
        {kind === 'memories' && (
          <Select
            aria-label="Scope"
            value={scope}
            onChange={(event) => setSearch({ kind, scope: event.target.value })}
          >
            <option value="agent">Of an agent</option>
            <option value="user">Of a person</option>
            <option value="space">Of a space</option>
          </Select>
        )}
        {scope === 'agent' ? (
          <Select aria-label="Agent" value={who} onChange={(event) => change({ of: event.target.value })}>
            {kind === 'knowledge' && <option value="">The project's documents</option>}
            {agents?.map(({ name }) => (
              <option key={name} value={name}>
                {kind === 'knowledge' ? `Documents of ${name}` : name}
              </option>
            ))}
          </Select>
        ) : (
          <Input
            mono
            aria-label={scope === 'user' ? 'Person' : 'Space'}
            placeholder={scope === 'user' ? 'Subject or ent_…' : 'space_…'}
            value={who}
            onChange={(event) => change({ of: event.target.value.trim() })}
          />
        )}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard */}
      <section className={styles.body} tabIndex={0} aria-label="Content">
        {isOfAgent && first === undefined && who === '' ? (
          <Loading />
        ) : kind === 'knowledge' ? (
          <KnowledgeView key={who} agent={who} />
        ) : (
          <RecordList key={`${kind} ${scope} ${who}`} kind={kind as RecordKind} owner={ownerOf(scope, who)} />
        )}
      </section>
    </Page>
  );
}
