import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { useAgents } from '../../data/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, TextArea } from '../../ui/field.tsx';

export interface NewAgentProps {
  readonly onClose: () => void;
  readonly onMade: (name: string) => void;
}

/** Asks for the least that an agent needs; the rest is edited afterwards. */
export function NewAgent({ onClose, onMade }: NewAgentProps) {
  const client = useClient();
  const queries = useQueryClient();
  const agents = useAgents().data;
  const [name, setName] = useState('');
  const [instructions, setInstructions] = useState('');
  const isTaken = agents?.some((agent) => agent.name === name) ?? false;
  const making = useMutation({
    mutationFn: () => client.agents.put(name, { instructions }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['agents'] });
      onMade(name);
    },
  });
  const problem = isTaken
    ? `There is an agent "${name}" already.`
    : making.error && describeError(making.error).detail;
  return (
    <Dialog
      title="New agent"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            busy={making.isPending}
            disabled={name.trim() === '' || isTaken}
            onClick={() => making.mutate()}
          >
            Create
          </Button>
        </>
      }
    >
      <Field
        label="Name"
        hint="Letters, digits, hyphens and underscores. It stands in addresses and cannot be changed."
        error={problem || undefined}
      >
        <Input mono autoFocus value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field label="Instructions" hint="The system prompt. It can be changed at any time.">
        <TextArea
          rows={6}
          placeholder="You are a helpful assistant."
          value={instructions}
          onChange={(event) => setInstructions(event.target.value)}
        />
      </Field>
    </Dialog>
  );
}
