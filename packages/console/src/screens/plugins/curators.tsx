import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Plus, ShieldCheck } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { DetailBody, DetailHead } from '../../ui/detail.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, TextArea } from '../../ui/field.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';

/** Who may sign plugins for the project. */
export function Curators() {
  const client = useClient();
  const queries = useQueryClient();
  const [isAdding, setAdding] = useState(false);
  const [revoked, setRevoked] = useState<wire.Curator>();
  const { data, error, refetch } = useQuery({
    queryKey: ['curators'],
    queryFn: ({ signal }) => client.curators.list({ signal }),
  });
  const revoking = useMutation({
    mutationFn: (curator: wire.Curator) => client.curators.revoke(curator.id),
    onSuccess: async (_, { id }) => {
      setRevoked(undefined);
      toast(`Nothing that ${id} has signed runs any more`);
      await queries.invalidateQueries({ queryKey: ['curators'] });
      await queries.invalidateQueries({ queryKey: ['plugins'] });
    },
    onError: toastError,
  });
  const add = (
    <Button variant="primary" icon={<Plus />} onClick={() => setAdding(true)}>
      Trust a curator
    </Button>
  );
  return (
    <>
      <DetailHead
        title="Curators"
        back="/plugins"
        about="Packages that they have signed can be installed"
        actions={data && data.length > 0 && add}
      />
      <DetailBody>
        {error && !data ? (
          <ErrorState error={error} retry={() => void refetch()} />
        ) : !data ? (
          <Loading />
        ) : data.length === 0 ? (
          <Empty icon={<ShieldCheck />} title="No curators yet" actions={add}>
            In production mode, only plugins that a curator has signed run.
          </Empty>
        ) : (
          <Table
            label="Curators"
            rows={data}
            rowKey={({ id }) => id}
            columns={[
              { title: 'Curator', cell: ({ id, name }) => (name ? `${name} (${id})` : id) },
              { title: 'Keys', cell: ({ keys }) => keys.map((key) => key.id.slice(0, 12)).join(', ') },
              { title: 'Added', cell: ({ addedAt }) => <RelativeTime time={addedAt} /> },
              {
                title: 'Revoke',
                quiet: true,
                end: true,
                cell: (curator) =>
                  curator.revoked ? (
                    <Badge tone="red">Revoked</Badge>
                  ) : (
                    <Button size="small" variant="danger" onClick={() => setRevoked(curator)}>
                      Revoke…
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </DetailBody>
      {isAdding && <AddCurator onClose={() => setAdding(false)} />}
      {revoked && (
        <Confirm
          title={`Revoke ${revoked.id}?`}
          action="Revoke"
          busy={revoking.isPending}
          onConfirm={() => revoking.mutate(revoked)}
          onClose={() => setRevoked(undefined)}
        >
          Every plugin that this curator has signed stops at once, and its keys never count again.
        </Confirm>
      )}
    </>
  );
}

function AddCurator({ onClose }: { readonly onClose: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const [id, setId] = useState('');
  const [publicKey, setPublicKey] = useState('');
  const adding = useMutation({
    mutationFn: () => client.curators.put(id, { keys: [{ publicKey }] }),
    onSuccess: async () => {
      onClose();
      toast(`${id} is trusted`);
      await queries.invalidateQueries({ queryKey: ['curators'] });
    },
  });
  return (
    <Dialog
      title="Trust a curator"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            busy={adding.isPending}
            disabled={id === '' || publicKey === ''}
            onClick={() => adding.mutate()}
          >
            Trust
          </Button>
        </>
      }
    >
      {adding.error && <p role="alert">{describeError(adding.error).detail}</p>}
      <Field label="Id" hint="As it stands in what the curator signs.">
        <Input mono autoFocus value={id} onChange={(event) => setId(event.target.value.trim())} />
      </Field>
      <Field label="Public key" hint="PEM, such as the curator.pub.pem of `toolgate plugin keygen`.">
        <TextArea mono rows={5} value={publicKey} onChange={(event) => setPublicKey(event.target.value)} />
      </Field>
    </Dialog>
  );
}
