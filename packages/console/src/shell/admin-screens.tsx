import { Blocks, Bot, Database, FolderTree, Gauge, Plug, Settings } from 'lucide-react';
import { lazy } from 'react';
import type { Screen } from './screens.tsx';

/** Screens with which a project is built and operated, in the order of the rail. */
export const ADMIN_SCREENS: readonly Screen[] = [
  {
    path: '/agents',
    title: 'Agents',
    icon: <Bot />,
    about: 'Edit, compare and try agents',
    group: 'build',
    view: lazy(() => import('../screens/agents/agents-screen.tsx')),
  },
  {
    path: '/plugins',
    title: 'Plugins',
    icon: <Blocks />,
    about: 'Install, review and write plugins',
    group: 'build',
    view: lazy(() => import('../screens/plugins/plugins-screen.tsx')),
  },
  {
    path: '/mcp-servers',
    title: 'MCP servers',
    icon: <Plug />,
    about: 'Connect servers and review their tools',
    group: 'build',
    view: lazy(() => import('../screens/mcp/mcp-screen.tsx')),
  },
  {
    path: '/spaces',
    title: 'Spaces',
    icon: <FolderTree />,
    about: 'Members, files and events of conversations',
    group: 'operate',
    view: lazy(() => import('../screens/spaces/spaces-screen.tsx')),
  },
  {
    path: '/state',
    title: 'State',
    icon: <Database />,
    about: 'Goals, memories, plans and knowledge',
    group: 'operate',
    view: lazy(() => import('../screens/state/state-screen.tsx')),
  },
  {
    path: '/overview',
    title: 'Overview',
    icon: <Gauge />,
    about: 'Live runs, charts and health',
    group: 'operate',
    view: lazy(() => import('../screens/overview/overview-screen.tsx')),
  },
  {
    path: '/settings',
    title: 'Settings',
    icon: <Settings />,
    about: 'Keys, sessions and projects',
    group: 'operate',
    view: lazy(() => import('../screens/settings/settings-screen.tsx')),
  },
];
