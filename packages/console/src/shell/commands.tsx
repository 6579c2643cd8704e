import { Activity, Bot, FolderTree, Moon, Sun, Wrench } from 'lucide-react';
import { type ReactNode, useMemo } from 'react';
import { useAgents, useTools } from '../data/queries.ts';
import { SCREENS } from './screens.tsx';
import { useTheme, useThemeChoice } from './theme.ts';

/** A row of the command palette: a place to go to, or something to do. */
export interface Command {
  readonly id: string;
  readonly group: string;
  readonly title: string;
  readonly about: string;
  readonly icon: ReactNode;
  readonly href?: string;
  readonly run?: () => void;
}

const FOUND_MAX = 40;

/** Everything that can be found. An id of a run or a space is a place of its own. */
export function useCommands(text: string): Command[] {
  const agents = useAgents().data;
  const tools = useTools().data;
  const theme = useTheme();
  const [, chooseTheme] = useThemeChoice();
  return useMemo(() => {
    const other = theme === 'dark' ? 'light' : 'dark';
    return [
      ...idCommands(text.trim()),
      ...SCREENS.map(({ path, title, about, icon }) => ({
        id: path,
        group: 'Go to',
        title,
        about,
        icon,
        href: path,
      })),
      ...(agents ?? []).map(({ name, config }) => ({
        id: `agent ${name}`,
        group: 'Talk to',
        title: name,
        about: typeof config.description === 'string' ? config.description : '',
        icon: <Bot />,
        href: `/chat?agent=${encodeURIComponent(name)}`,
      })),
      ...uniqueBy(tools ?? [], ({ name }) => name).map(({ name, description }) => ({
        id: `tool ${name}`,
        group: 'Try a tool',
        title: name,
        about: description,
        icon: <Wrench />,
        href: `/tools/${encodeURIComponent(name)}`,
      })),
      {
        id: 'theme',
        group: 'Do',
        title: `Switch to the ${other} theme`,
        about: '',
        icon: other === 'dark' ? <Moon /> : <Sun />,
        run: () => chooseTheme(other),
      },
    ];
  }, [agents, tools, theme, chooseTheme, text]);
}

function idCommands(text: string): Command[] {
  if (/^run_\w+$/.test(text))
    return [
      { id: text, group: 'Open', title: text, about: 'Run', icon: <Activity />, href: `/runs/${text}` },
    ];
  if (/^space_\w+$/.test(text))
    return [
      { id: text, group: 'Open', title: text, about: 'Space', icon: <FolderTree />, href: `/spaces/${text}` },
    ];
  return [];
}

/** The commands that fit what was typed: each word must occur; those whose title begins with it come first. */
export function rank(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = commands.flatMap((command) => {
    const title = command.title.toLowerCase();
    const all = `${title} ${command.group} ${command.about}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) return [];
    const first = words[0] ?? '';
    return [{ command, score: title.startsWith(first) ? 0 : title.includes(first) ? 1 : 2 }];
  });
  const groups = [...new Set(commands.map(({ group }) => group))];
  fits.sort((a, b) => groups.indexOf(a.command.group) - groups.indexOf(b.command.group) || a.score - b.score);
  return fits.map(({ command }) => command).slice(0, FOUND_MAX);
}

function uniqueBy<T>(values: readonly T[], key: (value: T) => string): T[] {
  return [...new Map(values.map((value) => [key(value), value])).values()];
}
