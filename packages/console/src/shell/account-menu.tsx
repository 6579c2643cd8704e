import type { Session } from '@toolgate/client';
import { CircleUserRound, LogOut, Monitor, Moon, Sun, Users } from 'lucide-react';
import { useClient } from '../data/gateway.tsx';
import { Menu, type MenuItem } from '../ui/menu.tsx';
import { toastError } from '../ui/toast.tsx';
import { useThemeChoice } from './theme.ts';

/** Theme and session. */
export function AccountMenu({ session }: { readonly session: Session }) {
  const [theme, chooseTheme] = useThemeChoice();
  const client = useClient();
  const leave = async (end: () => Promise<void>): Promise<void> => {
    try {
      await end();
      // A new page: nothing that was read stays in memory.
      globalThis.location.assign('/');
    } catch (error) {
      toastError(error);
    }
  };
  const items: MenuItem[] = [
    { head: who(session) },
    'line',
    {
      label: 'System theme',
      icon: <Monitor />,
      checked: theme === 'system',
      onSelect: () => chooseTheme('system'),
    },
    { label: 'Light', icon: <Sun />, checked: theme === 'light', onSelect: () => chooseTheme('light') },
    { label: 'Dark', icon: <Moon />, checked: theme === 'dark', onSelect: () => chooseTheme('dark') },
  ];
  if (session.kind === 'session')
    items.push(
      'line',
      { label: 'Sign out', icon: <LogOut />, onSelect: () => void leave(() => client.sessions.signOut()) },
      {
        label: 'Sign out everywhere',
        icon: <Users />,
        danger: true,
        onSelect: () => void leave(() => client.sessions.endAll()),
      },
    );
  return <Menu label="Account and theme" icon={<CircleUserRound />} items={items} />;
}

function who(session: Session): string {
  if (session.kind === 'open') return 'The gateway runs without authentication';
  return session.operator ? 'Signed in as the operator' : `Signed in to ${session.project.name}`;
}
