import { TriangleAlert } from 'lucide-react';
import { Button } from '../../ui/button.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { Note } from '../../ui/detail.tsx';
import { Dialog } from '../../ui/dialog.tsx';

export interface ShownOnceProps {
  readonly title: string;
  /** Names and secrets. */
  readonly secrets: ReadonlyArray<readonly [string, string]>;
  readonly onClose: () => void;
}

/** Shows what the gateway tells only once. */
export function ShownOnce({ title, secrets, onClose }: ShownOnceProps) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      stays
      footer={
        <Button variant="primary" onClick={onClose}>
          I have copied it
        </Button>
      }
    >
      <Note tone="amber" icon={<TriangleAlert />}>
        Copy it now. It is not stored in readable form and cannot be shown again.
      </Note>
      {secrets.map(([name, secret]) => (
        <div key={name}>
          <h3>{name}</h3>
          <CodeBlock text={secret} wrap />
        </div>
      ))}
    </Dialog>
  );
}
