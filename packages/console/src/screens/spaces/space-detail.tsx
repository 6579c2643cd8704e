import { useQuery } from '@tanstack/react-query';
import { MessageSquare } from 'lucide-react';
import { useSearchParams } from 'wouter';
import { useClient } from '../../data/gateway.tsx';
import { LinkButton } from '../../ui/button.tsx';
import { DetailBody, DetailHead } from '../../ui/detail.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Id } from '../../ui/id.tsx';
import { JsonView } from '../../ui/json-view.tsx';
import { Section } from '../../ui/page.tsx';
import { ErrorState, Loading } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { RelativeTime } from '../../ui/time.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { Consents } from './consents.tsx';
import { Files } from './files.tsx';
import { Members } from './members.tsx';
import { SpaceEvents } from './space-events.tsx';
import { useSpaceTitles } from './use-space-titles.ts';

/** One space: members, files, remembered approvals, metadata and events. */
export function SpaceDetail({ spaceId }: { readonly spaceId: string }) {
  const client = useClient();
  const [search, setSearch] = useSearchParams();
  const { data, error, refetch } = useQuery({
    queryKey: ['space', spaceId],
    queryFn: ({ signal }) => client.spaces.get(spaceId, { signal }),
  });
  const titles = useSpaceTitles();
  const tab = search.get('tab') ?? 'members';
  if (error && !data)
    return (
      <ErrorState
        error={error}
        retry={() => void refetch()}
        back={<LinkButton href="/spaces">All spaces</LinkButton>}
      />
    );
  if (!data) return <Loading />;
  return (
    <>
      <DetailHead
        title={showControls(data.title || titles.get(spaceId) || 'Space without a title')}
        back="/spaces"
        badges={<Id id={spaceId} />}
        actions={
          <LinkButton icon={<MessageSquare />} href={`/chat/${spaceId}`}>
            Open in chat
          </LinkButton>
        }
      />
      <Tabs
        label="Space"
        chosen={tab}
        onChoose={(id) => setSearch(id === 'members' ? {} : { tab: id }, { replace: true })}
        tabs={[
          { id: 'members', label: 'Members', count: data.members.length },
          { id: 'files', label: 'Files' },
          { id: 'consents', label: 'Approvals' },
          { id: 'events', label: 'Events' },
          { id: 'about', label: 'Metadata' },
        ]}
      />
      <DetailBody>
        {tab === 'files' ? (
          <Files spaceId={spaceId} />
        ) : tab === 'consents' ? (
          <Consents spaceId={spaceId} />
        ) : tab === 'events' ? (
          <SpaceEvents spaceId={spaceId} />
        ) : tab === 'about' ? (
          <>
            <Section title="Facts">
              <Facts
                rows={[
                  ['Agent', data.agent],
                  ['Created', <RelativeTime key="time" time={data.createdAt} />],
                ]}
              />
            </Section>
            <Section title="Metadata">
              <JsonView value={data.metadata ?? {}} open={3} label="Metadata" />
            </Section>
          </>
        ) : (
          <Members space={data} />
        )}
      </DetailBody>
    </>
  );
}
