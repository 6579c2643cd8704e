import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { useAgents } from '../../data/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';

export interface NewSpaceProps {
  readonly onClose: () => void;
  readonly onMade: (id: string) => void;
}

/** Creates a space with an agent and members. */
export function NewSpace({ onClose, onMade }: NewSpaceProps) {
  const client = useClient();
  const queries = useQueryClient();
  const agents = useAgents().data ?? [];
  const [title, setTitle] = useState('');
  const [agent, setAgent] = useState('');
  const [members, setMembers] = useState('');
  const making = useMutation({
    mutationFn: () =>
      client.spaces.create({
        ...(title && { title }),
        ...(agent && { agent }),
        members: members.split(',').flatMap((one) => one.trim() || []),
      }),
    onSuccess: async ({ id }) => {
      await queries.invalidateQueries({ queryKey: ['spaces'] });
      onMade(id);
    },
  });
  return (
    <Dialog
      title="New space"
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
      <Field label="Title">
        <Input autoFocus value={title} onChange={(event) => setTitle(event.target.value)} />
      </Field>
      <Field label="Agent" hint="Answers when a message names no other.">
        <Select value={agent} onChange={(event) => setAgent(event.target.value)}>
          <option value="">None</option>
          {agents.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
      </Field>
      <Field label="Members" hint="Subjects of users, separated by commas.">
        <Input mono value={members} onChange={(event) => setMembers(event.target.value)} />
      </Field>
    </Dialog>
  );
}
