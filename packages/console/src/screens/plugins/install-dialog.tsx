import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { PluginPackageSource, wire } from '@toolgate/client';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { Review } from './review.tsx';

/** Larger files are not read; the gateway accepts no package of this size. */
const FILE_BYTES_MAX = 8 * 1024 * 1024;

export interface InstallDialogProps {
  readonly onClose: () => void;
  readonly onInstalled: (id: string) => void;
}

/** Installs a package from a file or an address, after somebody has seen what it is and may do. */
export function InstallDialog({ onClose, onInstalled }: InstallDialogProps) {
  const client = useClient();
  const queries = useQueryClient();
  const [url, setUrl] = useState('');
  const [source, setSource] = useState<PluginPackageSource>();
  const reviewing = useMutation({
    mutationFn: async (from: PluginPackageSource | File) => {
      const read = from instanceof File ? await packageIn(from) : from;
      setSource(read);
      return client.installedPlugins.review(read);
    },
  });
  const installing = useMutation({
    mutationFn: (from: PluginPackageSource) => client.installedPlugins.install(from),
    onSuccess: async ({ package: { plugin, name, version } }) => {
      await queries.invalidateQueries({ queryKey: ['plugins'] });
      await queries.invalidateQueries({ queryKey: ['tools'] });
      toast(`${name} ${version} is installed`);
      onInstalled(plugin);
    },
  });
  const review: wire.PluginReview | undefined = reviewing.data;
  const error = installing.error ?? reviewing.error;
  return (
    <Dialog
      title={review ? `Review ${review.package.name} ${review.package.version}` : 'Install a plugin'}
      wide={review !== undefined}
      onClose={onClose}
      footer={
        review ? (
          <>
            <Button onClick={() => reviewing.reset()}>Back</Button>
            <Button
              variant="primary"
              busy={installing.isPending}
              disabled={review.problems.length > 0 || !source}
              onClick={() => source && installing.mutate(source)}
            >
              {review.action === 'upgrade' ? 'Upgrade' : 'Install'}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              variant="primary"
              busy={reviewing.isPending}
              disabled={url === ''}
              onClick={() => reviewing.mutate({ url })}
            >
              Review
            </Button>
          </>
        )
      }
    >
      {error && <p role="alert">{describeError(error).detail}</p>}
      {review ? (
        <Review review={review} />
      ) : (
        <>
          <Field
            label="File"
            hint="A package as one JSON document. Nothing is installed before you have reviewed it."
          >
            <Input
              type="file"
              accept=".json,application/json"
              onChange={(event) => {
                const file = event.target.files?.[0];
                if (file) reviewing.mutate(file);
              }}
            />
          </Field>
          <Field label="Address" hint="The gateway fetches it from there.">
            <Input
              mono
              type="url"
              placeholder="https://plugins.example.com/time.json"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          </Field>
        </>
      )}
    </Dialog>
  );
}

async function packageIn(file: File): Promise<Record<string, unknown>> {
  if (file.size > FILE_BYTES_MAX) throw new Error(`${file.name} is larger than a package may be.`);
  try {
    return JSON.parse(await file.text()) as Record<string, unknown>;
  } catch {
    throw new Error(`${file.name} is not JSON; a package is one JSON document.`);
  }
}
