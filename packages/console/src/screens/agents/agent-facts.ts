import type { Config } from './agent-document.ts';

/** What an agent's configuration says about it, in either form. */
export function descriptionOf(config: Config): string {
  const { agent, description } = config as { agent?: { description?: unknown }; description?: unknown };
  const found = description ?? agent?.description;
  return typeof found === 'string' ? found : '';
}

/** Who may start the agent, in words. */
export function accessWords(config: Config, name: string): string {
  const access = config.access ?? (name === 'default' ? 'public' : 'spaces');
  if (access === 'public') return 'Open to all users';
  if (access === 'spaces') return 'In its spaces';
  if (access === 'backend') return 'Backends only';
  const groups = (access as { groups?: unknown }).groups;
  return Array.isArray(groups) ? `Groups ${groups.join(', ')}` : 'Restricted';
}
