import { Bot, Plus } from 'lucide-react';
import { useState } from 'react';
import { useLocation, useRoute } from 'wouter';
import { useAgents } from '../../data/queries.ts';
import { Button } from '../../ui/button.tsx';
import { SearchInput } from '../../ui/field.tsx';
import { nameInAddress } from '../../ui/name-in-address.ts';
import { Page, Split } from '../../ui/page.tsx';
import { Rows, RowsHead } from '../../ui/rows.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { AgentDetail } from './agent-detail.tsx';
import { descriptionOf } from './agent-facts.ts';
import { NewAgent } from './new-agent.tsx';

/** Agents: `/agents` is the list, `/agents/{name}` one of them beside it. */
export default function AgentsScreen() {
  const [, params] = useRoute('/agents/:name');
  const [, navigate] = useLocation();
  const [isMaking, setMaking] = useState(false);
  const name = nameInAddress(params?.name);
  return (
    <Page
      title="Agents"
      layout="filled"
      actions={
        <Button variant="primary" icon={<Plus />} onClick={() => setMaking(true)}>
          New agent
        </Button>
      }
    >
      <Split
        open={name !== undefined}
        list={<AgentList chosen={name} onNew={() => setMaking(true)} />}
        detail={
          name === undefined ? (
            <Empty icon={<Bot />} title="No agent chosen">
              Choose an agent to edit it, to look at its revisions, and to try it.
            </Empty>
          ) : (
            <AgentDetail key={name} name={name} />
          )
        }
      />
      {isMaking && (
        <NewAgent
          onClose={() => setMaking(false)}
          onMade={(made) => {
            setMaking(false);
            navigate(`/agents/${encodeURIComponent(made)}`);
          }}
        />
      )}
    </Page>
  );
}

function AgentList({ chosen, onNew }: { readonly chosen: string | undefined; readonly onNew: () => void }) {
  const { data, error, refetch } = useAgents();
  const [text, setText] = useState('');
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  if (data.length === 0)
    return (
      <Empty
        icon={<Bot />}
        title="No agents yet"
        actions={
          <Button variant="primary" onClick={onNew}>
            Create the first one
          </Button>
        }
      >
        An agent is a model with instructions and tools.
      </Empty>
    );
  const wanted = text.toLowerCase();
  const shown = data.filter(({ name, config }) =>
    `${name} ${descriptionOf(config)}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <RowsHead>
        <SearchInput label="Search agents" value={text} onChange={(event) => setText(event.target.value)} />
      </RowsHead>
      {shown.length === 0 && <Empty icon={<Bot />} title="No agent fits the search" />}
      <Rows
        label="Agents"
        chosen={chosen}
        rows={shown.map(({ name, revision, config }) => ({
          id: name,
          href: `/agents/${encodeURIComponent(name)}`,
          title: name,
          about: descriptionOf(config) || 'No description',
          aside: `rev ${revision}`,
        }))}
      />
    </>
  );
}
