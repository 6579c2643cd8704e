import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { MonitorSmartphone } from 'lucide-react';
import { useState } from 'react';
import { useClient } from '../../data/gateway.tsx';
import { useSession } from '../../data/session.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Panel, Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { browserOf } from './browser-of.ts';

/** The browsers that are signed in; each can be signed out, or all of them. */
export function SessionList() {
  const client = useClient();
  const queries = useQueryClient();
  const session = useSession().data;
  const [isAsking, setAsking] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ['sessions'],
    queryFn: ({ signal }) => client.sessions.list({ signal }),
    enabled: session?.kind !== 'open',
  });
  const ending = useMutation({
    mutationFn: async (id: string | 'all') => {
      if (id === 'all') await client.sessions.endAll();
      else await client.sessions.end(id);
    },
    onSuccess: async (_, id) => {
      setAsking(false);
      toast(id === 'all' ? 'All sessions have ended' : 'The session has ended');
      await queries.invalidateQueries({ queryKey: ['sessions'] });
      await queries.invalidateQueries({ queryKey: ['session'] });
    },
    onError: toastError,
  });
  if (session?.kind === 'open')
    return (
      <Empty icon={<MonitorSmartphone />} title="There is nothing to sign in to">
        This gateway runs with --no-auth: everybody who reaches it may do everything.
      </Empty>
    );
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  return (
    <Section
      title="Sessions"
      actions={
        <Button size="small" variant="danger" onClick={() => setAsking(true)}>
          Sign out everywhere…
        </Button>
      }
    >
      <Panel>
        <Table
          label="Sessions"
          rows={data}
          rowKey={({ id }) => id}
          columns={[
            {
              title: 'Browser',
              cell: ({ userAgent, current, operator }) => (
                <>
                  <span title={userAgent ?? undefined}>{browserOf(userAgent)}</span>{' '}
                  {current && <Badge tone="green">this one</Badge>} {operator && <Badge>operator</Badge>}
                </>
              ),
            },
            { title: 'Signed in', cell: ({ createdAt }) => <RelativeTime time={createdAt} /> },
            { title: 'Last used', cell: ({ lastUsedAt }) => <RelativeTime time={lastUsedAt} /> },
            { title: 'Ends', cell: ({ expiresAt }) => <RelativeTime time={expiresAt} /> },
            {
              title: 'Sign out',
              quiet: true,
              end: true,
              cell: ({ id }) => (
                <Button
                  size="small"
                  variant="danger"
                  busy={ending.isPending && ending.variables === id}
                  onClick={() => ending.mutate(id)}
                >
                  Sign out
                </Button>
              ),
            },
          ]}
        />
      </Panel>
      {isAsking && (
        <Confirm
          title="Sign out everywhere?"
          action="Sign out everywhere"
          busy={ending.isPending}
          onConfirm={() => ending.mutate('all')}
          onClose={() => setAsking(false)}
        >
          All sessions of this project end, this one too. A new login link comes from `toolgate login`.
        </Confirm>
      )}
    </Section>
  );
}
