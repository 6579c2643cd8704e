import { useQuery } from '@tanstack/react-query';
import { Id } from '../ui/id.tsx';
import { showControls } from '../ui/visible-text.ts';
import { useClient } from './gateway.tsx';

/** Who an entity is, for people: its name, or else its subject. Its id until that is known. */
export function Person({ id }: { readonly id: string }) {
  const client = useClient();
  const { data } = useQuery({
    queryKey: ['entity', id],
    queryFn: ({ signal }) => client.entities.get(id, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!data) return <Id id={id} />;
  return <span title={`${data.subject} · ${id}`}>{showControls(data.name || data.subject)}</span>;
}
