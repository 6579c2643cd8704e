import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ToolgateError, type wire } from '@toolgate/client';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select, TextArea } from '../../ui/field.tsx';
import { Segments } from '../../ui/segments.tsx';
import { toast } from '../../ui/toast.tsx';
import { configOf, formOf, type ServerForm } from './server-form.ts';

const KINDS = [
  { id: 'url', label: 'At an address' },
  { id: 'command', label: 'A program' },
] as const;

export interface ServerDialogProps {
  /** The server that is changed; a new one without it. */
  readonly server?: wire.McpServer;
  readonly onClose: () => void;
  readonly onSaved: (name: string) => void;
}

/** Adds a server, or changes one. Values of headers and variables that are masked stay as they are. */
export function ServerDialog({ server, onClose, onSaved }: ServerDialogProps) {
  const client = useClient();
  const queries = useQueryClient();
  const [name, setName] = useState(server?.name ?? '');
  const [form, setForm] = useState<ServerForm>(() => formOf(server?.config ?? {}));
  const change = (part: Partial<ServerForm>): void => setForm({ ...form, ...part });
  const saving = useMutation({
    mutationFn: () => client.mcpServers.put(name, configOf(form, server?.config)),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['mcp-servers'] });
      toast(server ? `${name} is changed` : `${name} is added`);
      onSaved(name);
    },
  });
  const isComplete = name !== '' && (form.kind === 'url' ? form.url !== '' : form.command !== '');
  return (
    <Dialog
      title={server ? `Change ${server.name}` : 'Add an MCP server'}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            busy={saving.isPending}
            disabled={!isComplete}
            onClick={() => saving.mutate()}
          >
            {server ? 'Save' : 'Add'}
          </Button>
        </>
      }
    >
      {saving.error && <Mistakes error={saving.error} />}
      {!server && (
        <Field label="Name" hint="Its tools are called mcp_<name>_<tool>.">
          <Input mono autoFocus value={name} onChange={(event) => setName(event.target.value.trim())} />
        </Field>
      )}
      <Segments label="Kind" options={KINDS} chosen={form.kind} onChoose={(kind) => change({ kind })} />
      {form.kind === 'url' ? (
        <>
          <Field label="Address" hint="Streamable HTTP, such as https://mcp.example.com/mcp">
            <Input
              mono
              type="url"
              value={form.url}
              onChange={(event) => change({ url: event.target.value })}
            />
          </Field>
          <Field
            label="Headers"
            hint="One per line, Name: value. ${secret.NAME} stands for a secret of the project."
          >
            <TextArea
              mono
              rows={3}
              value={form.headers}
              onChange={(event) => change({ headers: event.target.value })}
            />
          </Field>
        </>
      ) : (
        <>
          <Field label="Command" hint="Runs on the gateway's machine with the gateway's rights.">
            <Input mono value={form.command} onChange={(event) => change({ command: event.target.value })} />
          </Field>
          <Field label="Arguments" hint="One per line.">
            <TextArea
              mono
              rows={3}
              value={form.args}
              onChange={(event) => change({ args: event.target.value })}
            />
          </Field>
          <Field label="Variables" hint="One per line, NAME: value.">
            <TextArea
              mono
              rows={2}
              value={form.env}
              onChange={(event) => change({ env: event.target.value })}
            />
          </Field>
        </>
      )}
      <Field label="Review" hint="Which tool definitions wait for a person before a model reads them.">
        <Select value={form.review} onChange={(event) => change({ review: event.target.value })}>
          <option value="flagged">Changed and suspicious ones</option>
          <option value="always">All of them</option>
          <option value="never">None</option>
        </Select>
      </Field>
      <Field label="Approval" hint="Which calls wait for a person.">
        <Select value={form.approve} onChange={(event) => change({ approve: event.target.value })}>
          <option value="none">None</option>
          <option value="destructive">Those that may destroy something</option>
          <option value="all">All of them</option>
        </Select>
      </Field>
    </Dialog>
  );
}

function Mistakes({ error }: { readonly error: unknown }) {
  const faults = error instanceof ToolgateError ? error.errors : [];
  return (
    <div role="alert">
      {faults.length === 0 ? (
        <p>{describeError(error).detail}</p>
      ) : (
        faults.map(({ pointer, message }) => <p key={pointer + message}>{`${pointer} ${message}`.trim()}</p>)
      )}
    </div>
  );
}
