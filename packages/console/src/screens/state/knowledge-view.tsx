import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { BookOpen, Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Button, IconButton } from '../../ui/button.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Note } from '../../ui/detail.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, SearchInput, TextArea } from '../../ui/field.tsx';
import { formatCount } from '../../ui/format.ts';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './state.module.css';

const PAGE = 100;

/** The documents of a collection, and a search that finds what agents find. */
export function KnowledgeView({ agent }: { readonly agent: string }) {
  const client = useClient();
  const of = agent === '' ? {} : { agent };
  const [text, setText] = useState('');
  const [isAdding, setAdding] = useState(false);
  const [shown, setShown] = useState<string>();
  const list = useInfiniteQuery({
    queryKey: ['documents', agent],
    queryFn: ({ pageParam, signal }) =>
      client.knowledge.list({ ...of, limit: PAGE, ...(pageParam && { after: pageParam }) }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
  const found = useQuery({
    queryKey: ['knowledge', agent, text],
    queryFn: ({ signal }) => client.knowledge.search(text, { ...of, signal }),
    enabled: text.trim() !== '',
  });
  const documents = list.data?.pages.flatMap((page) => page.documents);
  const add = (
    <Button variant="primary" icon={<Plus />} onClick={() => setAdding(true)}>
      Add a document
    </Button>
  );
  return (
    <>
      {documents && documents.length > 0 && (
        <div className={styles.search}>
          <SearchInput
            label="Search as agents do"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          {add}
        </div>
      )}
      {list.error && !documents ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : !documents ? (
        <Loading />
      ) : documents.length === 0 ? (
        <Empty icon={<BookOpen />} title="No documents" actions={add}>
          Documents that agents find with searchKnowledge: text, Markdown and HTML.
        </Empty>
      ) : text.trim() !== '' ? (
        <Passages results={found.data?.results} error={found.error} onOpen={setShown} />
      ) : (
        <Documents documents={documents} agent={agent} onOpen={setShown} />
      )}
      {text.trim() === '' && list.hasNextPage && (
        <Button variant="ghost" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          More
        </Button>
      )}
      {isAdding && <AddDocument agent={agent} onClose={() => setAdding(false)} />}
      {shown && <ShowDocument id={shown} agent={agent} onClose={() => setShown(undefined)} />}
    </>
  );
}

interface PassagesProps {
  readonly results: readonly wire.Passage[] | undefined;
  readonly error: unknown;
  readonly onOpen: (id: string) => void;
}

function Passages({ results, error, onOpen }: PassagesProps) {
  if (error && !results) return <ErrorState error={error} />;
  if (!results) return <Loading rows={4} />;
  if (results.length === 0) return <Empty icon={<BookOpen />} title="No passage fits" />;
  return (
    <ol className={styles.records} aria-label="Passages">
      {results.map(({ documentId, title, passage, snippet, score }) => (
        <li key={`${documentId} ${passage}`} className={styles.passage}>
          <button type="button" className={styles.link} onClick={() => onOpen(documentId)}>
            {showControls(title)}
          </button>
          <span className={styles.time}>{score.toFixed(2)}</span>
          <p>{showControls(snippet)}</p>
        </li>
      ))}
    </ol>
  );
}

interface DocumentsProps {
  readonly documents: readonly wire.Document[];
  readonly agent: string;
  readonly onOpen: (id: string) => void;
}

function Documents({ documents, agent, onOpen }: DocumentsProps) {
  const client = useClient();
  const queries = useQueryClient();
  const [asked, setAsked] = useState<wire.Document>();
  const deleting = useMutation({
    mutationFn: ({ id }: wire.Document) => client.knowledge.delete(id, agent === '' ? {} : { agent }),
    onSuccess: async (_, { title }) => {
      setAsked(undefined);
      toast(`${title} is deleted`);
      await queries.invalidateQueries({ queryKey: ['documents'] });
    },
    onError: toastError,
  });
  return (
    <>
      <Table
        label="Documents"
        rows={documents}
        rowKey={({ id }) => id}
        columns={[
          {
            title: 'Title',
            cell: ({ id, title }) => (
              <button type="button" className={styles.link} onClick={() => onOpen(id)}>
                {showControls(title)}
              </button>
            ),
          },
          { title: 'Id', cell: ({ id }) => <code>{id}</code> },
          { title: 'Characters', end: true, cell: ({ characters }) => formatCount(characters) },
          { title: 'Found by', cell: ({ embedded }) => (embedded ? 'words and meaning' : 'words') },
          { title: 'Changed', cell: ({ updatedAt }) => <RelativeTime time={updatedAt} /> },
          {
            title: 'Delete',
            quiet: true,
            end: true,
            cell: (document) => (
              <IconButton
                size="small"
                label={`Delete ${document.title}`}
                icon={<Trash2 />}
                onClick={() => setAsked(document)}
              />
            ),
          },
        ]}
      />
      {asked && (
        <Confirm
          title={`Delete ${asked.title}?`}
          action="Delete"
          busy={deleting.isPending}
          onConfirm={() => deleting.mutate(asked)}
          onClose={() => setAsked(undefined)}
        >
          No agent finds it any more. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}

interface DocumentProps {
  readonly agent: string;
  readonly onClose: () => void;
}

function AddDocument({ agent, onClose }: DocumentProps) {
  const client = useClient();
  const queries = useQueryClient();
  const [id, setId] = useState('');
  const [text, setText] = useState('');
  const adding = useMutation({
    mutationFn: () =>
      client.knowledge.put(id, text, { mimeType: 'text/markdown', ...(agent !== '' && { agent }) }),
    onSuccess: async ({ title }) => {
      onClose();
      toast(`${title} is stored`);
      await queries.invalidateQueries({ queryKey: ['documents'] });
    },
  });
  return (
    <Dialog
      title="Add a document"
      wide
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            busy={adding.isPending}
            disabled={id === '' || text.trim() === ''}
            onClick={() => adding.mutate()}
          >
            Add
          </Button>
        </>
      }
    >
      {adding.error && <Note tone="red">{describeError(adding.error).detail}</Note>}
      <Field label="Id" hint="Letters, digits, _, - and . — a document with this id is replaced.">
        <Input mono autoFocus value={id} onChange={(event) => setId(event.target.value.trim())} />
      </Field>
      <Field label="Text" hint="Markdown. Its first heading is the title.">
        <TextArea rows={12} value={text} onChange={(event) => setText(event.target.value)} />
      </Field>
    </Dialog>
  );
}

function ShowDocument({ id, agent, onClose }: DocumentProps & { readonly id: string }) {
  const client = useClient();
  const { data, error } = useQuery({
    queryKey: ['document', agent, id],
    queryFn: ({ signal }) => client.knowledge.get(id, { signal, ...(agent !== '' && { agent }) }),
  });
  return (
    <Dialog title={data ? showControls(data.title) : id} wide onClose={onClose}>
      {error ? <ErrorState error={error} /> : data ? <CodeBlock text={data.text ?? ''} wrap /> : <Loading />}
    </Dialog>
  );
}
