import type { wire } from '@toolgate/client';
import { CircleX, TriangleAlert } from 'lucide-react';
import { Note } from '../../ui/detail.tsx';
import { Facts } from '../../ui/facts.tsx';
import { formatBytes } from '../../ui/format.ts';
import { JsonView } from '../../ui/json-view.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { Permissions } from './permissions.tsx';
import { TrustBadge } from './trust-badge.tsx';

const ACTIONS: Readonly<Record<wire.ReviewAction, string>> = {
  install: 'Installs a new plugin',
  upgrade: 'Upgrades the plugin',
  downgrade: 'Goes back to an earlier version',
  replace: 'Replaces the same version by another package',
  none: 'Changes nothing: this package is installed',
};

/** What installing a package would do, for whoever decides on it. */
export function Review({ review }: { readonly review: wire.PluginReview }) {
  const { action, fromVersion, package: found, tools, audit, problems } = review;
  return (
    <>
      {problems.map(({ code, pointer, message }) => (
        <Note key={code + pointer} tone="red" icon={<CircleX />}>
          {showControls(message)} <code>{code}</code>
        </Note>
      ))}
      {found.verification.state !== 'verified' && problems.length === 0 && (
        <Note tone="amber" icon={<TriangleAlert />}>
          {found.verification.reason ?? 'Nobody whom this project trusts vouches for all of this package.'}
        </Note>
      )}
      <Facts
        rows={[
          ['Does', `${ACTIONS[action]}${fromVersion ? `, from ${fromVersion}` : ''}`],
          ['Trust', <TrustBadge key="trust" verification={found.verification} />],
          ['New tools', tools.added.join(', ')],
          ['Removed tools', tools.removed.join(', ')],
          ['Other code', tools.otherCode.join(', ')],
          ['Changed', tools.changed.map(({ tool, member }) => `${tool}: ${member}`).join(', ')],
          ['Size', formatBytes(found.bytes)],
        ]}
      />
      <h3>What it may do</h3>
      <Permissions permissions={found.permissions} />
      <h3>What was found in its code</h3>
      <JsonView value={audit} open={2} label="Audit" />
    </>
  );
}
