import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Check, CircleCheck, CircleX, Hand, TriangleAlert, X } from 'lucide-react';
import { useState } from 'react';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button, LinkButton } from '../../ui/button.tsx';
import { Note } from '../../ui/detail.tsx';
import { JsonView } from '../../ui/json-view.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './mcp.module.css';

/** A tool of a server. One that is held shows what changed and what is suspicious, and can be decided on. */
export function ToolReview({ server, tool }: { readonly server: string; readonly tool: wire.McpTool }) {
  const [isOpen, setOpen] = useState(tool.state === 'held');
  const description = tool.definition.description;
  return (
    <article className={styles.tool} aria-label={tool.tool}>
      <div className={styles.toolHead}>
        <button
          type="button"
          className={styles.toolName}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <code>{tool.tool}</code>
        </button>
        <State tool={tool} />
        {tool.state === 'accepted' && (
          <LinkButton size="small" variant="ghost" href={`/tools/${encodeURIComponent(tool.name)}`}>
            Try
          </LinkButton>
        )}
      </div>
      {typeof description === 'string' && <p className={styles.about}>{showControls(description)}</p>}
      {isOpen && (
        <>
          {tool.flags?.map(({ pointer, reason, seen }) => (
            <Note key={pointer + reason} tone="amber" icon={<TriangleAlert />}>
              <code>{pointer}</code> {reason}: “{showControls(seen)}”
            </Note>
          ))}
          {tool.diff?.map((difference) => (
            <Difference key={difference.pointer} {...difference} />
          ))}
          <JsonView value={tool.definition} open={1} label={`Definition of ${tool.tool}`} />
          {tool.state !== 'accepted' && <Decision server={server} tool={tool} />}
        </>
      )}
    </article>
  );
}

const WHY: Readonly<Record<string, string>> = {
  new: 'new',
  flagged: 'looks like instructions to the model',
  changed: 'changed since it was accepted',
};

function State({ tool: { state, why } }: { readonly tool: wire.McpTool }) {
  if (state === 'accepted')
    return (
      <Badge tone="green" icon={<CircleCheck />}>
        Offered
      </Badge>
    );
  if (state === 'rejected')
    return (
      <Badge tone="red" icon={<CircleX />}>
        Rejected
      </Badge>
    );
  return (
    <Badge tone="amber" icon={<Hand />}>
      Held{why ? `: ${WHY[why] ?? why}` : ''}
    </Badge>
  );
}

function Difference({ pointer, before, after }: wire.McpToolDifference) {
  return (
    <div className={styles.difference}>
      <code>{pointer}</code>
      {before !== undefined && before !== null && <del>{showControls(words(before))}</del>}
      {after !== undefined && after !== null && <ins>{showControls(words(after))}</ins>}
    </div>
  );
}

function words(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function Decision({ server, tool }: { readonly server: string; readonly tool: wire.McpTool }) {
  const client = useClient();
  const queries = useQueryClient();
  const deciding = useMutation({
    mutationFn: (accept: boolean) =>
      accept
        ? client.mcpServers.approveTool(server, tool.tool, tool.hash)
        : client.mcpServers.rejectTool(server, tool.tool, tool.hash),
    onSuccess: async (_, accept) => {
      toast(accept ? `${tool.tool} is offered to agents` : `${tool.tool} is rejected`);
      await queries.invalidateQueries({ queryKey: ['mcp-servers'] });
      await queries.invalidateQueries({ queryKey: ['tools'] });
    },
    onError: toastError,
  });
  return (
    <div className={styles.decision}>
      <Button
        variant="primary"
        icon={<Check />}
        busy={deciding.isPending}
        onClick={() => deciding.mutate(true)}
      >
        Accept this definition
      </Button>
      {tool.state === 'held' && (
        <Button
          variant="danger"
          icon={<X />}
          disabled={deciding.isPending}
          onClick={() => deciding.mutate(false)}
        >
          Reject
        </Button>
      )}
    </div>
  );
}
