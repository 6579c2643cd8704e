import type { wire } from '@toolgate/client';
import { Badge } from '../../ui/badge.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './plugins.module.css';

/** What a package may do, in plain words. */
export function Permissions({ permissions }: { readonly permissions: readonly wire.PluginPermission[] }) {
  if (permissions.length === 0)
    return <p className={styles.quiet}>Only compute: it reaches no network and stores nothing.</p>;
  return (
    <ul className={styles.permissions}>
      {permissions.map(({ permission, description, added }) => (
        <li key={permission}>
          <span>{showControls(description)}</span>
          <code>{showControls(permission)}</code>
          {added && <Badge tone="amber">new</Badge>}
        </li>
      ))}
    </ul>
  );
}
