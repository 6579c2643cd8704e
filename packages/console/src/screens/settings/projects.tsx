import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Boxes, Plus } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { Id } from '../../ui/id.tsx';
import { Panel, Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast } from '../../ui/toast.tsx';
import { ShownOnce } from './shown-once.tsx';

/** The projects of the gateway, for its operator. */
export function Projects() {
  const client = useClient();
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<wire.CreatedProject>();
  const [asked, setAsked] = useState<wire.Project>();
  const { data, error, refetch } = useQuery({
    queryKey: ['projects'],
    queryFn: ({ signal }) => client.projects.list({ signal }),
  });
  const make = (
    <Button variant="primary" icon={<Plus />} onClick={() => setMaking(true)}>
      Create a project
    </Button>
  );
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  return (
    <Section title="Projects" actions={data.length > 0 && make}>
      {data.length === 0 ? (
        <Empty icon={<Boxes />} title="No projects" actions={make}>
          A project has its own keys, agents, spaces and runs; nothing is shared between projects.
        </Empty>
      ) : (
        <Panel>
          <Table
            label="Projects"
            rows={data}
            rowKey={({ id }) => id}
            columns={[
              { title: 'Name', cell: ({ name }) => name },
              { title: 'Id', cell: ({ id }) => <Id id={id} /> },
              { title: 'Users sign in by', cell: ({ jwksUrl }) => jwksUrl ?? 'a shared secret' },
              { title: 'Created', cell: ({ createdAt }) => <RelativeTime time={createdAt} /> },
              {
                title: 'Remove',
                quiet: true,
                end: true,
                cell: (project) => (
                  <Button size="small" variant="danger" onClick={() => setAsked(project)}>
                    Remove…
                  </Button>
                ),
              },
            ]}
          />
        </Panel>
      )}
      {isMaking && (
        <NewProject
          onClose={() => setMaking(false)}
          onMade={(project) => {
            setMaking(false);
            setMade(project);
          }}
        />
      )}
      {made && (
        <ShownOnce
          title={`Project ${made.name}`}
          secrets={[
            ['Secret key', made.secretKey],
            ['Public key', made.publicKey],
            ...(made.jwtSecret ? ([['JWT secret', made.jwtSecret]] as const) : []),
          ]}
          onClose={() => setMade(undefined)}
        />
      )}
      {asked && <RemoveProject project={asked} onClose={() => setAsked(undefined)} />}
    </Section>
  );
}

function NewProject({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (project: wire.CreatedProject) => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const [jwksUrl, setJwksUrl] = useState('');
  const making = useMutation({
    mutationFn: () => client.projects.create({ name, ...(jwksUrl && { jwksUrl }) }),
    onSuccess: async (project) => {
      onMade(project);
      await queries.invalidateQueries({ queryKey: ['projects'] });
    },
  });
  return (
    <Dialog
      title="Create a project"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            busy={making.isPending}
            disabled={name === ''}
            onClick={() => making.mutate()}
          >
            Create
          </Button>
        </>
      }
    >
      {making.error && <p role="alert">{describeError(making.error).detail}</p>}
      <Field label="Name" hint="Lower-case letters, digits and hyphens.">
        <Input mono autoFocus value={name} onChange={(event) => setName(event.target.value.trim())} />
      </Field>
      <Field
        label="Keys of the identity provider"
        hint="Address of its JWKS document. Without one, a secret is made."
      >
        <Input mono type="url" value={jwksUrl} onChange={(event) => setJwksUrl(event.target.value)} />
      </Field>
    </Dialog>
  );
}

/** Removes a project after its name was typed: there is no way back. */
function RemoveProject({
  project,
  onClose,
}: {
  readonly project: wire.Project;
  readonly onClose: () => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const [typed, setTyped] = useState('');
  const removing = useMutation({
    mutationFn: () => client.projects.remove(project.name),
    onSuccess: async () => {
      onClose();
      toast(`Project ${project.name} is removed`);
      await queries.invalidateQueries({ queryKey: ['projects'] });
    },
  });
  return (
    <Dialog
      title={`Remove ${project.name}?`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            variant="danger"
            busy={removing.isPending}
            disabled={typed !== project.name}
            onClick={() => removing.mutate()}
          >
            Remove
          </Button>
        </>
      }
    >
      {removing.error && <p role="alert">{describeError(removing.error).detail}</p>}
      <p>Its keys, agents, spaces, files, runs and their events are deleted. This cannot be undone.</p>
      <Field label={`Type ${project.name} to go on`}>
        <Input mono value={typed} onChange={(event) => setTyped(event.target.value)} />
      </Field>
    </Dialog>
  );
}
