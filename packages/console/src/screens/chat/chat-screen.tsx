import { useQuery } from '@tanstack/react-query';
import { ToolgateChatProvider, useToolgateChat } from '@toolgate/react';
import { useEffect, useMemo, useState } from 'react';
import { useLocation, useRoute, useSearchParams } from 'wouter';
import { AGENT_TOOLS, PAGE_TOOLS } from '../../conversation/page-tools.ts';
import { useClient } from '../../data/gateway.tsx';
import { useAgents } from '../../data/queries.ts';
import styles from './chat.module.css';
import { ChatHead } from './chat-head.tsx';
import { Composer } from './composer.tsx';
import { MessageList } from './message-list.tsx';
import { RecentChats } from './recent-chats.tsx';
import { Trouble } from './trouble.tsx';

/** The chat: `/chat` begins a conversation, `/chat/{space}` goes on with one. */
export default function ChatScreen() {
  const client = useClient();
  const [, params] = useRoute('/chat/:space');
  const [search] = useSearchParams();
  const [, navigate] = useLocation();
  const [pageTools, setPageTools] = useState(true);
  const spaceId = params?.space;
  const agent = useAgent(spaceId, search.get('agent'));
  const tools = useMemo(() => (pageTools ? { ...PAGE_TOOLS, ...AGENT_TOOLS } : AGENT_TOOLS), [pageTools]);
  return (
    <ToolgateChatProvider
      client={client}
      tools={tools}
      {...(agent && { agent })}
      {...(spaceId && { defaultSpaceId: spaceId })}
      onSpaceChange={(next) => {
        // The agent stays in the address: until the space has been read, nothing else says whom one talks to.
        const asked = search.get('agent');
        const query = asked ? `?agent=${encodeURIComponent(asked)}` : '';
        if (next !== spaceId) navigate(next ? `/chat/${next}${query}` : '/chat');
      }}
    >
      <div className={styles.layout}>
        <RecentChats spaceId={spaceId} />
        <section className={styles.chat} aria-label="Chat">
          <FollowAddress spaceId={spaceId} />
          <ChatHead agent={agent} spaceId={spaceId} />
          <MessageList agent={agent} />
          <footer className={styles.foot}>
            <Trouble />
            <Composer pageTools={pageTools} onPageTools={setPageTools} />
          </footer>
        </section>
      </div>
    </ToolgateChatProvider>
  );
}

/** Leaves the conversation when the address does, as the browser's Back makes it. */
function FollowAddress({ spaceId }: { readonly spaceId: string | undefined }) {
  const { open } = useToolgateChat();
  useEffect(() => open(spaceId), [open, spaceId]);
  return null;
}

/** The agent that answers: the space's own, the one in the address, or the project's first. */
function useAgent(spaceId: string | undefined, asked: string | null): string | undefined {
  const client = useClient();
  const agents = useAgents().data;
  const space = useQuery({
    queryKey: ['space', spaceId],
    queryFn: ({ signal }) => client.spaces.get(spaceId as string, { signal }),
    enabled: spaceId !== undefined,
  });
  if (asked) return asked;
  // No other agent in the meantime: the message that made the space may be under way.
  if (spaceId) return space.data?.agent ?? undefined;
  const names = agents?.map(({ name }) => name) ?? [];
  return ['welcome', 'default'].find((name) => names.includes(name)) ?? names[0];
}
