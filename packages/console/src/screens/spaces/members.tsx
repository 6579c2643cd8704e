import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Plus, Users } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Person } from '../../data/person.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { Id } from '../../ui/id.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';

/** Who takes part in a space; members are added, given a role, and removed. */
export function Members({ space }: { readonly space: wire.Space }) {
  const client = useClient();
  const queries = useQueryClient();
  const [asked, setAsked] = useState<string>();
  const removing = useMutation({
    mutationFn: (entity: string) => client.spaces.removeMember(space.id, entity),
    onSuccess: async () => {
      toast('The member is removed; its open streams end');
      await queries.invalidateQueries({ queryKey: ['space', space.id] });
    },
    onError: toastError,
  });
  const add = (
    <Button size="small" icon={<Plus />} onClick={() => setAsked('')}>
      Add a member
    </Button>
  );
  return (
    <Section title="Members" actions={space.members.length > 0 && add}>
      {space.members.length === 0 ? (
        <Empty icon={<Users />} title="No members" actions={add}>
          Only backends read and write here. A member's browser sees the space too.
        </Empty>
      ) : (
        <Table
          label="Members"
          rows={space.members}
          rowKey={(id) => id}
          columns={[
            { title: 'Who', cell: (id) => <Person id={id} /> },
            { title: 'Role', cell: (id) => <MemberRole spaceId={space.id} entity={id} /> },
            { title: 'Id', cell: (id) => <Id id={id} /> },
            {
              title: 'Actions',
              quiet: true,
              end: true,
              cell: (id) => (
                <>
                  <Button size="small" variant="ghost" onClick={() => setAsked(id)}>
                    Set role…
                  </Button>
                  <Button
                    size="small"
                    variant="danger"
                    busy={removing.isPending && removing.variables === id}
                    onClick={() => removing.mutate(id)}
                  >
                    Remove
                  </Button>
                </>
              ),
            },
          ]}
        />
      )}
      {asked !== undefined && (
        <MemberForm spaceId={space.id} entity={asked} onClose={() => setAsked(undefined)} />
      )}
    </Section>
  );
}

/** A member's role and permissions in a space. */
function useMember(spaceId: string, entity: string) {
  const client = useClient();
  return useQuery({
    queryKey: ['space', spaceId, 'member', entity],
    queryFn: ({ signal }) => client.spaces.member(spaceId, entity, { signal }),
    enabled: entity !== '',
  });
}

function MemberRole({ spaceId, entity }: { readonly spaceId: string; readonly entity: string }) {
  const { data } = useMember(spaceId, entity);
  if (!data) return '–';
  return (
    <>
      {data.role ? <Badge tone="accent">{showControls(data.role)}</Badge> : '–'}{' '}
      {data.grants.map((grant) => (
        <Badge key={grant}>{showControls(grant)}</Badge>
      ))}
    </>
  );
}

interface MemberDialogProps {
  readonly spaceId: string;
  /** The member that is changed; empty for a new one. */
  readonly entity: string;
  readonly onClose: () => void;
}

/** Waits for what the member has: what is saved takes the place of all of it. */
function MemberForm(props: MemberDialogProps) {
  const { data, error } = useMember(props.spaceId, props.entity);
  if (props.entity !== '' && !data)
    return (
      <Dialog title="Set the role" onClose={props.onClose}>
        {error ? <ErrorState error={error} /> : <Loading rows={3} />}
      </Dialog>
    );
  return <MemberDialog {...props} member={data} />;
}

function MemberDialog({
  spaceId,
  entity,
  member,
  onClose,
}: MemberDialogProps & { readonly member: wire.Member | undefined }) {
  const client = useClient();
  const queries = useQueryClient();
  const [who, setWho] = useState(member?.entity.subject ?? entity);
  const [role, setRole] = useState(member?.role ?? '');
  const [grants, setGrants] = useState(member?.grants.join(', ') ?? '');
  const saving = useMutation({
    mutationFn: () =>
      client.spaces.putMember(spaceId, entity || who, {
        ...(role && { role }),
        // An empty list says that there are none; without both, what the member has would stay.
        ...((grants || entity) && { grants: grants.split(',').flatMap((one) => one.trim() || []) }),
      }),
    onSuccess: async () => {
      onClose();
      toast(entity ? 'The role is set' : `${who} is a member`);
      await queries.invalidateQueries({ queryKey: ['space', spaceId] });
    },
  });
  return (
    <Dialog
      title={entity ? 'Set the role' : 'Add a member'}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            busy={saving.isPending}
            disabled={who === ''}
            onClick={() => saving.mutate()}
          >
            {entity ? 'Save' : 'Add'}
          </Button>
        </>
      }
    >
      {saving.error && <p role="alert">{describeError(saving.error).detail}</p>}
      <Field label="Who" hint="The subject of a user's token, or an entity's id.">
        <Input
          mono
          value={who}
          disabled={entity !== ''}
          onChange={(event) => setWho(event.target.value.trim())}
        />
      </Field>
      <Field label="Role" hint="Your own word, such as manager; tools name their approvers by it.">
        <Input value={role} onChange={(event) => setRole(event.target.value)} />
      </Field>
      <Field label="Permissions" hint="Beside those of the person, separated by commas.">
        <Input mono value={grants} onChange={(event) => setGrants(event.target.value)} />
      </Field>
    </Dialog>
  );
}
