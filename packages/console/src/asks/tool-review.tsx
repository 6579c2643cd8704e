import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Check, ShieldAlert, X } from 'lucide-react';
import { useClient } from '../data/gateway.tsx';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { classNames } from '../ui/class-names.ts';
import { JsonView } from '../ui/json-view.tsx';
import { toast, toastError } from '../ui/toast.tsx';
import { showControls } from '../ui/visible-text.ts';
import styles from './tool-review.module.css';

const REASONS: Readonly<Record<string, string>> = {
  new: 'New',
  changed: 'Changed since it was accepted',
  flagged: 'Looks like instructions to the model',
};

export interface ToolReviewProps {
  readonly server: string;
  readonly tool: wire.McpTool;
}

/** A definition of an MCP server that waits for a person: what differs, what is suspicious, accept or reject. */
export function ToolReview({ server, tool }: ToolReviewProps) {
  const client = useClient();
  const queries = useQueryClient();
  const decide = useMutation({
    // The hash names what was looked at: a definition that changes meanwhile is not accepted with it.
    mutationFn: (accept: boolean) =>
      accept
        ? client.mcpServers.approveTool(server, tool.tool, tool.hash)
        : client.mcpServers.rejectTool(server, tool.tool, tool.hash),
    onSuccess: (_, accept) =>
      toast(accept ? `New runs are offered ${tool.name}.` : `${tool.name} is rejected.`),
    onError: toastError,
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ['mcp-servers'] }),
        queries.invalidateQueries({ queryKey: ['tools'] }),
      ]),
  });
  const diff = tool.diff ?? [];
  return (
    <article className={styles.review}>
      <div className={styles.head}>
        <h3>{tool.name}</h3>
        {tool.why && (
          <Badge tone="amber" icon={<ShieldAlert />}>
            {REASONS[tool.why] ?? tool.why}
          </Badge>
        )}
        <span>of the server {server}</span>
      </div>
      {(tool.flags?.length ?? 0) > 0 && (
        <ul className={styles.flags}>
          {tool.flags?.map(({ pointer, reason, seen }) => (
            <li key={pointer + reason}>
              {reason} ({pointer}): <code>{showControls(seen)}</code>
            </li>
          ))}
        </ul>
      )}
      {diff.length === 0 ? (
        <JsonView value={tool.definition} open={2} label="Definition" />
      ) : (
        diff.map((change) => <Change key={change.pointer} change={change} />)
      )}
      <div className={styles.actions}>
        <Button
          variant="primary"
          icon={<Check />}
          busy={decide.isPending}
          onClick={() => decide.mutate(true)}
        >
          Accept
        </Button>
        <Button
          variant="danger"
          icon={<X />}
          disabled={decide.isPending}
          onClick={() => decide.mutate(false)}
        >
          Reject
        </Button>
      </div>
    </article>
  );
}

function Change({ change: { pointer, before, after } }: { readonly change: wire.McpToolDifference }) {
  return (
    <div className={styles.change}>
      <span className={styles.pointer}>{pointer}</span>
      {before !== undefined && before !== null && <Side sign="−" value={before} className={styles.before} />}
      {after !== undefined && after !== null && <Side sign="+" value={after} className={styles.after} />}
    </div>
  );
}

interface SideProps {
  readonly sign: string;
  readonly value: unknown;
  readonly className: string | undefined;
}

function Side({ sign, value, className }: SideProps) {
  return (
    <div className={classNames(styles.side, className)}>
      <span>{sign}</span>
      <span>{showControls(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}</span>
    </div>
  );
}
