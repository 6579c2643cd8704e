import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { EllipsisVertical, MessageSquare, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { LinkButton } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { DetailHead } from '../../ui/detail.tsx';
import { Menu } from '../../ui/menu.tsx';
import { ErrorState, Loading } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { AgentEditor } from './agent-editor.tsx';
import { accessWords, descriptionOf } from './agent-facts.ts';
import styles from './agents.module.css';
import { Revisions } from './revisions.tsx';
import { TryChat } from './try-chat.tsx';

const TABS = [
  { id: 'edit', label: 'Edit' },
  { id: 'try', label: 'Try' },
  { id: 'revisions', label: 'Revisions' },
] as const;
type TabId = (typeof TABS)[number]['id'];

/** One agent: its configuration, a chat to try it, and its revisions. */
export function AgentDetail({ name }: { readonly name: string }) {
  const client = useClient();
  const [search, setSearch] = useSearchParams();
  const { data, error, refetch } = useQuery({
    queryKey: ['agent', name],
    queryFn: ({ signal }) => client.agents.get(name, { signal }),
  });
  const chosen = TABS.find(({ id }) => id === search.get('tab'))?.id ?? 'edit';
  if (error && !data)
    return (
      <ErrorState
        error={error}
        retry={() => void refetch()}
        back={<LinkButton href="/agents">All agents</LinkButton>}
      />
    );
  if (!data) return <Loading />;
  return (
    <div className={styles.detail}>
      <DetailHead
        title={name}
        back="/agents"
        badges={
          <>
            <Badge>revision {data.revision}</Badge>
            <Badge>{accessWords(data.config, name)}</Badge>
          </>
        }
        about={descriptionOf(data.config)}
        actions={
          <>
            <LinkButton icon={<MessageSquare />} href={`/chat?agent=${encodeURIComponent(name)}`}>
              Open in chat
            </LinkButton>
            <More name={name} />
          </>
        }
      />
      <Tabs<TabId>
        label="Agent"
        tabs={TABS}
        chosen={chosen}
        onChoose={(id) => setSearch(id === 'edit' ? {} : { tab: id }, { replace: true })}
      />
      {chosen === 'revisions' ? (
        <Revisions agent={data} />
      ) : (
        // Both stay mounted, so that neither the text nor the conversation is lost between the tabs.
        <div className={styles.workbench} data-shown={chosen}>
          <AgentEditor agent={data} />
          <TryChat name={name} revision={data.revision} />
        </div>
      )}
    </div>
  );
}

function More({ name }: { readonly name: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [isAsking, setAsking] = useState(false);
  const removing = useMutation({
    mutationFn: () => client.agents.remove(name),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['agents'] });
      toast(`Agent ${name} is removed`);
      navigate('/agents');
    },
    onError: toastError,
  });
  return (
    <>
      <Menu
        label="More"
        icon={<EllipsisVertical />}
        items={[{ label: 'Remove…', icon: <Trash2 />, danger: true, onSelect: () => setAsking(true) }]}
      />
      {isAsking && (
        <Confirm
          title={`Remove ${name}?`}
          action="Remove"
          busy={removing.isPending}
          onConfirm={() => removing.mutate()}
          onClose={() => setAsking(false)}
        >
          Its open runs are cancelled and nobody can start it. Its revisions, goals and memories are kept: an
          agent of this name has them again.
        </Confirm>
      )}
    </>
  );
}
