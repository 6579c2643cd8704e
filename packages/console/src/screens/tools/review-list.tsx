import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, ShieldCheck } from 'lucide-react';
import { ToolReview } from '../../asks/tool-review.tsx';
import { useClient } from '../../data/gateway.tsx';
import { LinkButton } from '../../ui/button.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import styles from './tools.module.css';

const REFRESH_MS = 10_000;

/** The MCP servers of the project, and their tools that wait for a review. */
export function useHeldTools() {
  const client = useClient();
  const servers = useQuery({
    queryKey: ['mcp-servers'],
    queryFn: ({ signal }) => client.mcpServers.list({ signal }),
    refetchInterval: REFRESH_MS,
  });
  const held = (servers.data ?? []).flatMap(({ name, tools }) =>
    tools.filter(({ state }) => state === 'held').map((tool) => ({ server: name, tool })),
  );
  return { ...servers, held };
}

/** Definitions of MCP servers that nobody is offered before a person has looked at them. */
export function ReviewList() {
  const { data, held, isPending, error, refetch } = useHeldTools();
  if (isPending) return <Loading />;
  if (!data) return <ErrorState error={error} retry={() => void refetch()} />;
  return (
    <div className={styles.detail}>
      <div className={styles.back}>
        <LinkButton href="/tools" size="small" variant="ghost" icon={<ArrowLeft />}>
          Tools
        </LinkButton>
      </div>
      <div className={styles.head}>
        <h2>Waiting for a review</h2>
        <p className={styles.description}>
          An MCP server may change what it tells the model at any time. Agents are offered these definitions
          when you have accepted them.
        </p>
      </div>
      {held.length === 0 ? (
        <Empty icon={<ShieldCheck />} title="Everything is reviewed">
          A tool appears here when its definition changes, or looks like instructions to the model.
        </Empty>
      ) : (
        held.map(({ server, tool }) => <ToolReview key={server + tool.hash} server={server} tool={tool} />)
      )}
    </div>
  );
}
