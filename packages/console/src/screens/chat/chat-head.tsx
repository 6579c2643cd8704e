import { useQueryClient } from '@tanstack/react-query';
import { useToolgateChat } from '@toolgate/react';
import { Activity, History, SquarePen } from 'lucide-react';
import { useEffect } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { useAgents } from '../../data/queries.ts';
import { Button, LinkButton } from '../../ui/button.tsx';
import { Select } from '../../ui/field.tsx';
import { Menu } from '../../ui/menu.tsx';
import styles from './chat.module.css';
import { chatTitle, useRecentChats } from './recent-chats.tsx';

const MENU_ROWS_MAX = 12;

export interface ChatHeadProps {
  readonly agent: string | undefined;
  readonly spaceId: string | undefined;
}

/** The agent picker and what can be done with the conversation. */
export function ChatHead({ agent, spaceId }: ChatHeadProps) {
  const { run, messages } = useToolgateChat();
  const agents = useAgents().data ?? [];
  const [, setSearch] = useSearchParams();
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const status = run?.status;
  useEffect(() => {
    // What this conversation asks is in the inbox too.
    if (status) void queries.invalidateQueries({ queryKey: ['inbox'] });
  }, [queries, status]);
  return (
    <header className={styles.head}>
      <h1>Chat</h1>
      <Select
        className={styles.picker}
        aria-label="Agent"
        value={agent ?? ''}
        onChange={(event) => setSearch({ agent: event.target.value }, { replace: true })}
      >
        {!agent && <option value="">Agent</option>}
        {agent && !agents.some(({ name }) => name === agent) && <option value={agent}>{agent}</option>}
        {agents.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </Select>
      <span className={styles.grow} />
      {run && (
        <LinkButton variant="ghost" href={`/runs/${run.id}`} icon={<Activity />}>
          <span className={styles.headWord}>Run</span>
        </LinkButton>
      )}
      <span className={styles.recentMenu}>
        <RecentMenu spaceId={spaceId} />
      </span>
      <Button
        icon={<SquarePen />}
        disabled={spaceId === undefined && messages.length === 0}
        onClick={() => navigate('/chat')}
      >
        <span className={styles.headWord}>New chat</span>
      </Button>
    </header>
  );
}

/** The recent conversations, where there is no room for them beside the chat. */
function RecentMenu({ spaceId }: { readonly spaceId: string | undefined }) {
  const [, navigate] = useLocation();
  const recent = useRecentChats(spaceId) ?? [];
  const rows = recent.slice(0, MENU_ROWS_MAX).map((run) => ({
    label: chatTitle(run),
    checked: run.spaceId === spaceId,
    onSelect: () => navigate(`/chat/${run.spaceId}`),
  }));
  return (
    <Menu
      label="Recent conversations"
      icon={<History />}
      items={[
        { head: rows.length > 0 ? 'Recent' : 'Conversations appear here after the first message' },
        ...rows,
      ]}
    />
  );
}
