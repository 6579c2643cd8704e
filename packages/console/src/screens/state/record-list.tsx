import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import type { RecordOwner, wire } from '@toolgate/client';
import { Database, Pencil, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Note } from '../../ui/detail.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CodeEditor } from '../../ui/editor/lazy.tsx';
import { SearchInput } from '../../ui/field.tsx';
import { JsonView } from '../../ui/json-view.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { changeable, changesOf, type RecordKind, titleOf } from './record-owner.ts';
import styles from './state.module.css';

const PAGE = 100;
const EMPTY: Readonly<Record<RecordKind, [title: string, about: string]>> = {
  goals: ['No goals', 'An agent with the tool setGoals keeps its goals here.'],
  memories: ['No memories', 'What agents remember with setMemory is kept here.'],
  plans: ['No plans', 'An agent with the tool createPlan keeps moments here at which a run starts.'],
};

export interface RecordListProps {
  readonly kind: RecordKind;
  readonly owner: RecordOwner | undefined;
}

/** The records of one owner, with search; each can be changed and deleted. */
export function RecordList({ kind, owner }: RecordListProps) {
  const client = useClient();
  const [text, setText] = useState('');
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['records', kind, owner],
    queryFn: ({ pageParam, signal }) =>
      client[kind].list({ ...owner, limit: PAGE, ...(pageParam && { after: pageParam }) }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    enabled: owner !== undefined,
  });
  if (!owner)
    return (
      <Empty icon={<Database />} title="Whose?">
        Name a person or a space above.
      </Empty>
    );
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const records = data.pages.flatMap((page) => page.records);
  const wanted = text.toLowerCase();
  const shown = records.filter((record) => JSON.stringify(record).toLowerCase().includes(wanted));
  const [title, about] = EMPTY[kind];
  if (records.length === 0)
    return (
      <Empty icon={<Database />} title={title}>
        {about}
      </Empty>
    );
  return (
    <>
      <div className={styles.search}>
        <SearchInput
          label={`Search ${kind}`}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      {shown.length === 0 && <Empty icon={<Database />} title="Nothing fits the search" />}
      <ul className={styles.records} aria-label={kind}>
        {shown.map((record) => (
          <RecordRow key={record.id} kind={kind} owner={owner} record={record} />
        ))}
      </ul>
      {hasNextPage && (
        <Button variant="ghost" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          More
        </Button>
      )}
    </>
  );
}

interface RecordProps {
  readonly kind: RecordKind;
  readonly owner: RecordOwner;
  readonly record: wire.AgentRecordBody;
}

function RecordRow({ kind, owner, record }: RecordProps) {
  const client = useClient();
  const queries = useQueryClient();
  const [open, setOpen] = useState<'edit' | 'delete'>();
  const deleting = useMutation({
    mutationFn: () => client[kind].delete(record.id, owner, { version: record.version }),
    onSuccess: async () => {
      setOpen(undefined);
      toast('Deleted');
      await queries.invalidateQueries({ queryKey: ['records', kind] });
    },
    onError: toastError,
  });
  return (
    <li className={styles.record}>
      <details>
        <summary>
          <span className={styles.title}>{showControls(titleOf(record))}</span>
          <span className={styles.time}>
            {record.nextAt ? (
              <>
                next <RelativeTime time={record.nextAt} />
              </>
            ) : (
              <RelativeTime time={record.updatedAt} />
            )}
          </span>
        </summary>
        <JsonView value={record} open={2} label={`Record ${record.id}`} />
        <div className={styles.actions}>
          <Button size="small" icon={<Pencil />} onClick={() => setOpen('edit')}>
            Edit
          </Button>
          <Button size="small" variant="danger" icon={<Trash2 />} onClick={() => setOpen('delete')}>
            Delete…
          </Button>
        </div>
      </details>
      {open === 'edit' && <EditRecord {...{ kind, owner, record }} onClose={() => setOpen(undefined)} />}
      {open === 'delete' && (
        <Confirm
          title="Delete it?"
          action="Delete"
          busy={deleting.isPending}
          onConfirm={() => deleting.mutate()}
          onClose={() => setOpen(undefined)}
        >
          “{showControls(titleOf(record)).slice(0, 200)}” is gone for good; agents find it no more.
        </Confirm>
      )}
    </li>
  );
}

function EditRecord({ kind, owner, record, onClose }: RecordProps & { readonly onClose: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const before = changeable(record);
  const [text, setText] = useState(() => `${JSON.stringify(before, null, 2)}\n`);
  const saving = useMutation({
    mutationFn: () => {
      const after = JSON.parse(text) as Record<string, unknown>;
      return client[kind].change(record.id, owner, changesOf(before, after), { version: record.version });
    },
    onSuccess: async () => {
      onClose();
      toast('Saved');
      await queries.invalidateQueries({ queryKey: ['records', kind] });
    },
  });
  return (
    <Dialog
      title={`Edit ${record.id}`}
      wide
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" busy={saving.isPending} onClick={() => saving.mutate()}>
            Save
          </Button>
        </>
      }
    >
      {saving.error && <Note tone="red">{describeError(saving.error).detail}</Note>}
      <div className={styles.editor}>
        <CodeEditor
          label={`Members of ${record.id}`}
          language="json"
          value={text}
          onChange={setText}
          onSave={() => saving.mutate()}
        />
      </div>
    </Dialog>
  );
}
