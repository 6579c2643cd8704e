import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { Panel, Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { ShownOnce } from './shown-once.tsx';

/** The project's keys: created, shown once, revoked. */
export function Keys() {
  const client = useClient();
  const queries = useQueryClient();
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<wire.Key>();
  const [asked, setAsked] = useState<wire.Key>();
  const { data, error, refetch } = useQuery({
    queryKey: ['keys'],
    queryFn: ({ signal }) => client.keys.list({ signal }),
  });
  const revoking = useMutation({
    mutationFn: ({ id }: wire.Key) => client.keys.remove(id),
    onSuccess: async () => {
      setAsked(undefined);
      toast('The key is revoked');
      await queries.invalidateQueries({ queryKey: ['keys'] });
    },
    onError: toastError,
  });
  const make = (
    <Button variant="primary" icon={<Plus />} onClick={() => setMaking(true)}>
      Create a key
    </Button>
  );
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  return (
    <Section title="API keys" actions={data.length > 0 && make}>
      {data.length === 0 ? (
        <Empty icon={<KeyRound />} title="No keys" actions={make}>
          A secret key is for your backend, a public key for your users' browsers.
        </Empty>
      ) : (
        <Panel>
          <Table
            label="Keys"
            rows={data}
            rowKey={({ id }) => id}
            columns={[
              { title: 'Name', cell: ({ name }) => name || 'Without a name' },
              {
                title: 'Kind',
                cell: ({ kind }) => <Badge tone={kind === 'secret' ? 'violet' : 'neutral'}>{kind}</Badge>,
              },
              { title: 'Key', cell: ({ hint }) => <code>{hint}…</code> },
              { title: 'Created', cell: ({ createdAt }) => <RelativeTime time={createdAt} /> },
              {
                title: 'Revoke',
                quiet: true,
                end: true,
                cell: (key) => (
                  <Button size="small" variant="danger" onClick={() => setAsked(key)}>
                    Revoke…
                  </Button>
                ),
              },
            ]}
          />
        </Panel>
      )}
      {isMaking && (
        <NewKey
          onClose={() => setMaking(false)}
          onMade={(key) => {
            setMaking(false);
            setMade(key);
          }}
        />
      )}
      {made?.key && (
        <ShownOnce
          title={`The ${made.kind} key`}
          secrets={[[made.name || 'Key', made.key]]}
          onClose={() => setMade(undefined)}
        />
      )}
      {asked && (
        <Confirm
          title={`Revoke ${asked.name || asked.hint}?`}
          action="Revoke"
          busy={revoking.isPending}
          onConfirm={() => revoking.mutate(asked)}
          onClose={() => setAsked(undefined)}
        >
          Requests with it are rejected from now on, and streams that were opened with it end. This cannot be
          undone.
        </Confirm>
      )}
    </Section>
  );
}

function NewKey({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (key: wire.Key) => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const [kind, setKind] = useState<wire.KeyKind>('secret');
  const making = useMutation({
    mutationFn: () => client.keys.create({ kind, ...(name && { name }) }),
    onSuccess: async (key) => {
      onMade(key);
      await queries.invalidateQueries({ queryKey: ['keys'] });
    },
  });
  return (
    <Dialog
      title="Create a key"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" busy={making.isPending} onClick={() => making.mutate()}>
            Create
          </Button>
        </>
      }
    >
      {making.error && <p role="alert">{describeError(making.error).detail}</p>}
      <Field label="Name" hint="What it is for, such as the service that uses it.">
        <Input autoFocus value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field
        label="Kind"
        hint={
          kind === 'secret'
            ? 'Opens everything in this project. For backends; never put it in a browser.'
            : "Opens nothing by itself: together with a user's token it opens what that user may reach."
        }
      >
        <Select value={kind} onChange={(event) => setKind(event.target.value as wire.KeyKind)}>
          <option value="secret">Secret</option>
          <option value="public">Public</option>
        </Select>
      </Field>
    </Dialog>
  );
}
