import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { ShieldCheck } from 'lucide-react';
import { useClient } from '../../data/gateway.tsx';
import { Person } from '../../data/person.tsx';
import { Button } from '../../ui/button.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';

/** The decisions that are remembered in a space: who gave them, for which tool, and a button to revoke each. */
export function Consents({ spaceId }: { readonly spaceId: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: ['space', spaceId, 'consents'],
    queryFn: ({ signal }) => client.consents.list(spaceId, { signal }),
  });
  const revoking = useMutation({
    mutationFn: ({ id }: wire.Consent) => client.consents.revoke(spaceId, id),
    onSuccess: async (_, { toolName }) => {
      toast(`${toolName} asks again`);
      await queries.invalidateQueries({ queryKey: ['space', spaceId, 'consents'] });
    },
    onError: toastError,
  });
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  if (data.length === 0)
    return (
      <Empty icon={<ShieldCheck />} title="No remembered approvals">
        A tool with "approval": "first-in-space" or "until-revoked" remembers a yes, which is listed here.
      </Empty>
    );
  return (
    <Section title="Remembered approvals">
      <Table
        label="Remembered approvals"
        rows={data}
        rowKey={({ id }) => id}
        columns={[
          { title: 'Tool', cell: ({ toolName }) => <code>{toolName}</code> },
          { title: 'Agent', cell: ({ agent }) => agent },
          { title: 'Approved by', cell: ({ by }) => (by ? <Person id={by} /> : 'a secret key') },
          { title: 'For', cell: ({ givenFor }) => (givenFor ? <Person id={givenFor} /> : '–') },
          { title: 'When', cell: ({ givenAt }) => <RelativeTime time={givenAt} /> },
          {
            title: 'Actions',
            quiet: true,
            end: true,
            cell: (consent) => (
              <Button
                size="small"
                variant="danger"
                busy={revoking.isPending && revoking.variables.id === consent.id}
                onClick={() => revoking.mutate(consent)}
              >
                Revoke
              </Button>
            ),
          },
        ]}
      />
    </Section>
  );
}
