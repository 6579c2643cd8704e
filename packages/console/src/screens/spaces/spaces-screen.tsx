import { useInfiniteQuery } from '@tanstack/react-query';
import type { wire } from '@toolgate/client';
import { FolderTree, Plus } from 'lucide-react';
import { useState } from 'react';
import { useLocation, useRoute } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { shortId } from '../../ui/format.ts';
import { Page, Split } from '../../ui/page.tsx';
import { Rows } from '../../ui/rows.tsx';
import { Empty, ErrorState, Loading } from '../../ui/states.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { NewSpace } from './new-space.tsx';
import { SpaceDetail } from './space-detail.tsx';
import { useSpaceTitles } from './use-space-titles.ts';

const PAGE = 50;

/** Spaces: `/spaces` is the list, `/spaces/{space}` one of them beside it. */
export default function SpacesScreen() {
  const client = useClient();
  const [, params] = useRoute('/spaces/:space');
  const [, navigate] = useLocation();
  const [isMaking, setMaking] = useState(false);
  const titles = useSpaceTitles();
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['spaces'],
    queryFn: ({ pageParam, signal }) =>
      client.spaces.list({ limit: PAGE, ...(pageParam && { before: pageParam }) }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
  const make = (
    <Button variant="primary" icon={<Plus />} onClick={() => setMaking(true)}>
      New space
    </Button>
  );
  const spaces = data?.pages.flatMap((page) => page.spaces);
  return (
    <Page title="Spaces" layout="filled" actions={make}>
      <Split
        open={params !== null}
        list={
          error && !spaces ? (
            <ErrorState error={error} retry={() => void refetch()} />
          ) : !spaces ? (
            <Loading />
          ) : spaces.length === 0 ? (
            <Empty icon={<FolderTree />} title="No spaces yet" actions={make}>
              A space is a conversation with its members, files and events. A chat makes one.
            </Empty>
          ) : (
            <>
              <Rows
                label="Spaces"
                chosen={params?.space}
                rows={spaces.map((space) => rowOf(space, titles.get(space.id)))}
              />
              {hasNextPage && (
                <Button variant="ghost" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
                  Earlier ones
                </Button>
              )}
            </>
          )
        }
        detail={
          params?.space ? (
            <SpaceDetail key={params.space} spaceId={params.space} />
          ) : (
            <Empty icon={<FolderTree />} title="No space chosen">
              Choose a space to see its members, its files and what happened in it.
            </Empty>
          )
        }
      />
      {isMaking && (
        <NewSpace
          onClose={() => setMaking(false)}
          onMade={(id) => {
            setMaking(false);
            navigate(`/spaces/${id}`);
          }}
        />
      )}
    </Page>
  );
}

function rowOf({ id, title, agent, members, createdAt }: wire.Space, words: string | undefined) {
  const name = title || words;
  return {
    id,
    href: `/spaces/${id}`,
    title: name ? showControls(name) : <code>{shortId(id)}</code>,
    about: `${agent ?? 'no agent'} · ${members.length === 1 ? '1 member' : `${members.length} members`}`,
    aside: <RelativeTime time={createdAt} />,
  };
}
