import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { Download, FileText, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useClient } from '../../data/gateway.tsx';
import { Button, IconButton } from '../../ui/button.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { formatBytes } from '../../ui/format.ts';
import { Markdown } from '../../ui/markdown.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { toast, toastError } from '../../ui/toast.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { previewOf } from './preview.ts';
import styles from './spaces.module.css';

const PAGE = 100;

/** The files of a space, with preview and download. */
export function Files({ spaceId }: { readonly spaceId: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const [shown, setShown] = useState<wire.File>();
  const [asked, setAsked] = useState<wire.File>();
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['files', spaceId],
    queryFn: ({ pageParam, signal }) =>
      client.files.list(spaceId, { limit: PAGE, ...(pageParam && { after: pageParam }) }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
  const deleting = useMutation({
    mutationFn: ({ path }: wire.File) => client.files.delete(spaceId, path),
    onSuccess: async (_, { path }) => {
      setAsked(undefined);
      toast(`${path} is deleted`);
      await queries.invalidateQueries({ queryKey: ['files', spaceId] });
    },
    onError: toastError,
  });
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const files = data.pages.flatMap((page) => page.files);
  const first = data.pages[0];
  if (files.length === 0)
    return (
      <Empty icon={<FileText />} title="No files">
        Agents write files here with vfs_write, and tools store images and documents.
      </Empty>
    );
  return (
    <Section
      title={`${first?.totalFiles ?? files.length} of at most ${first?.filesMax ?? '–'} files, ${formatBytes(first?.totalBytes ?? 0)} of ${formatBytes(first?.bytesMax ?? 0)}`}
    >
      <Table
        label="Files"
        rows={files}
        rowKey={({ path }) => path}
        columns={[
          {
            title: 'Name',
            cell: (file) => (
              <button type="button" className={styles.name} onClick={() => setShown(file)}>
                {showControls(file.path)}
              </button>
            ),
          },
          { title: 'Type', cell: ({ mimeType }) => mimeType },
          { title: 'Size', cell: ({ bytes }) => formatBytes(bytes) },
          { title: 'Changed', cell: ({ updatedAt }) => <RelativeTime time={updatedAt} /> },
          {
            title: 'Actions',
            quiet: true,
            end: true,
            cell: (file) => (
              <>
                <IconButton
                  size="small"
                  label={`Download ${file.path}`}
                  icon={<Download />}
                  onClick={() => {
                    client.files
                      .read(spaceId, file.path)
                      .then(({ data: bytes }) => save(file.path, bytes), toastError);
                  }}
                />
                <IconButton
                  size="small"
                  label={`Delete ${file.path}`}
                  icon={<Trash2 />}
                  onClick={() => setAsked(file)}
                />
              </>
            ),
          },
        ]}
      />
      {hasNextPage && (
        <Button variant="ghost" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          More
        </Button>
      )}
      {shown && <Preview spaceId={spaceId} file={shown} onClose={() => setShown(undefined)} />}
      {asked && (
        <Confirm
          title={`Delete ${asked.path}?`}
          action="Delete"
          busy={deleting.isPending}
          onConfirm={() => deleting.mutate(asked)}
          onClose={() => setAsked(undefined)}
        >
          Its earlier versions are deleted too. This cannot be undone.
        </Confirm>
      )}
    </Section>
  );
}

function Preview({
  spaceId,
  file,
  onClose,
}: {
  readonly spaceId: string;
  readonly file: wire.File;
  readonly onClose: () => void;
}) {
  const client = useClient();
  const kind = previewOf(file);
  const { data, error } = useQuery({
    queryKey: ['file', spaceId, file.path, file.version],
    queryFn: ({ signal }) => client.files.read(spaceId, file.path, { version: file.version, signal }),
    enabled: kind !== 'none',
  });
  return (
    <Dialog
      title={showControls(file.path)}
      wide
      onClose={onClose}
      footer={
        <Button icon={<Download />} disabled={!data} onClick={() => data && save(file.path, data.data)}>
          Download
        </Button>
      }
    >
      {kind === 'none' ? (
        <Empty icon={<FileText />} title="No preview">
          {formatBytes(file.bytes)} of {file.mimeType}. Download it from the list.
        </Empty>
      ) : error ? (
        <ErrorState error={error} />
      ) : !data ? (
        <Loading />
      ) : kind === 'image' ? (
        <Picture bytes={data.data} mimeType={file.mimeType} name={file.path} />
      ) : kind === 'markdown' ? (
        <Markdown text={data.text()} />
      ) : (
        <CodeBlock text={data.text()} wrap />
      )}
    </Dialog>
  );
}

function Picture({
  bytes,
  mimeType,
  name,
}: {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
  readonly name: string;
}) {
  const [url] = useState(() => URL.createObjectURL(new Blob([bytes as BlobPart], { type: mimeType })));
  return <img className={styles.picture} src={url} alt={name} onLoad={() => URL.revokeObjectURL(url)} />;
}

/** Hands a file to the browser's downloads. Its type is neutral, so that nothing of it is opened. */
function save(path: string, bytes: Uint8Array): void {
  const url = URL.createObjectURL(new Blob([bytes as BlobPart], { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = path.split('/').at(-1) ?? 'file';
  link.click();
  URL.revokeObjectURL(url);
}
