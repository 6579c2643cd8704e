import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ToolgateError, type wire } from '@toolgate/client';
import { Play } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Select } from '../../ui/field.tsx';
import { formatDuration } from '../../ui/format.ts';
import { JsonView } from '../../ui/json-view.tsx';
import { initialValue, type Schema } from '../../ui/schema-form/schema.ts';
import { SchemaForm } from '../../ui/schema-form/schema-form.tsx';
import { problemsOf } from '../../ui/schema-form/validate.ts';
import { StatusBadge } from '../../ui/status.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './tools.module.css';

const WAIT_SECONDS = 20;

export interface TryFormProps {
  readonly tool: wire.Tool;
  readonly agents: readonly string[];
}

/** Calls a tool without a model, with an input made by a form. */
export function TryForm({ tool, agents }: TryFormProps) {
  const client = useClient();
  const queries = useQueryClient();
  const schema = tool.parameters as Schema;
  const [input, setInput] = useState<unknown>(() => initialValue(schema, schema) ?? {});
  const [agent, setAgent] = useState(agents[0] ?? '');
  const isSound = useMemo(() => Object.keys(problemsOf(schema, input)).length === 0, [schema, input]);
  const [isTold, setTold] = useState(false);
  const body = { arguments: input as Record<string, unknown>, ...(agent && { agent }) };
  const call = useMutation({
    mutationFn: async () => {
      const began = performance.now();
      const outcome = await client.tools.call(tool.name, body, { waitSeconds: WAIT_SECONDS });
      return { outcome, ms: performance.now() - began };
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['tool-usage', tool.name] }),
  });
  return (
    <form
      className={styles.try}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        // The page's check may be wrong: who has seen what it says may send the input all the same.
        if (isSound || isTold) call.mutate();
        setTold(!isSound);
      }}
    >
      <SchemaForm
        schema={schema}
        value={input}
        onChange={setInput}
        problems={faultsOf(call.error)}
        tellAll={isTold}
      />
      <div className={styles.row}>
        <Button type="submit" variant="primary" icon={<Play />} busy={call.isPending}>
          Call
        </Button>
        {agents.length > 1 && (
          <Select aria-label="As agent" value={agent} onChange={(event) => setAgent(event.target.value)}>
            {agents.map((name) => (
              <option key={name} value={name}>
                as {name}
              </option>
            ))}
          </Select>
        )}
        <CopyButton wide label="Copy as curl" text={() => curl(tool.name, body)} />
        {!isSound && isTold && (
          <span className={styles.hint}>
            The input does not fit the schema. Call again to send it as it is.
          </span>
        )}
      </div>
      {call.error && (
        <p className={styles.error} role="alert">
          {describeError(call.error).code}: {showControls(describeError(call.error).detail)}
        </p>
      )}
      {call.data && <Outcome {...call.data} />}
    </form>
  );
}

function Outcome({ outcome, ms }: { readonly outcome: wire.ToolCall; readonly ms: number }) {
  return (
    <div className={styles.try} role="status">
      <div className={styles.row}>
        <StatusBadge status={outcome.status} />
        <Badge>{formatDuration(ms)}</Badge>
        <Link href={`/runs/${outcome.runId}`}>
          <Badge tone="accent">Open the run</Badge>
        </Link>
      </div>
      {outcome.error && (
        <p className={styles.error}>
          <b>{outcome.error.code}</b> {showControls(outcome.error.message)}
        </p>
      )}
      {outcome.output !== undefined && <JsonView value={outcome.output} open={3} label="Output" />}
      {outcome.status.startsWith('waiting') && (
        <p className={styles.hint}>
          The call waits for somebody. Open the run to decide, answer or give its result.
        </p>
      )}
    </div>
  );
}

/** The gateway's faults by their place in the input. */
function faultsOf(error: unknown): Record<string, string> {
  if (!(error instanceof ToolgateError)) return {};
  return Object.fromEntries(
    error.errors.map(({ pointer, message }) => [pointer.replace(/^\/arguments/, ''), message]),
  );
}

function curl(name: string, body: unknown): string {
  const text = JSON.stringify(body).replaceAll("'", `'\\''`);
  const address = `${globalThis.location.origin}/v1/tools/${encodeURIComponent(name)}/call`;
  return `curl ${address} -H "authorization: Bearer $TOOLGATE_SECRET_KEY" -H 'content-type: application/json' -d '${text}'`;
}
