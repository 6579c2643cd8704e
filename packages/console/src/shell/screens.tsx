import { Activity, Inbox, MessageSquare, Wrench } from 'lucide-react';
import { type ComponentType, lazy, type ReactNode } from 'react';
import { ADMIN_SCREENS } from './admin-screens.tsx';

/** A place of the console. */
export interface Screen {
  /** First segment of its address. */
  readonly path: string;
  readonly title: string;
  readonly icon: ReactNode;
  /** What the command palette says of it. */
  readonly about: string;
  /** Group of the rail. */
  readonly group: 'use' | 'build' | 'operate';
  /** Loaded when it is opened. It is given the rest of the address by the router. */
  readonly view: ComponentType;
}

/** Every screen, in the order of the rail. Adding one is a folder below `screens/` and a row here. */
export const SCREENS: readonly Screen[] = [
  {
    path: '/chat',
    title: 'Chat',
    icon: <MessageSquare />,
    about: 'Talk to an agent',
    group: 'use',
    view: lazy(() => import('../screens/chat/chat-screen.tsx')),
  },
  {
    path: '/runs',
    title: 'Runs',
    icon: <Activity />,
    about: 'What agents did, step by step',
    group: 'use',
    view: lazy(() => import('../screens/runs/runs-screen.tsx')),
  },
  {
    path: '/inbox',
    title: 'Inbox',
    icon: <Inbox />,
    about: 'Approvals and questions that wait for a person',
    group: 'use',
    view: lazy(() => import('../screens/inbox/inbox-screen.tsx')),
  },
  {
    path: '/tools',
    title: 'Tools',
    icon: <Wrench />,
    about: 'The registry, and a form to try each tool',
    group: 'build',
    view: lazy(() => import('../screens/tools/tools-screen.tsx')),
  },
  ...ADMIN_SCREENS,
];
