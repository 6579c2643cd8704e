import { useSyncExternalStore } from 'react';

export type Theme = 'light' | 'dark';
export type ThemeChoice = Theme | 'system';

const KEY = 'toolgate.theme';
const listeners = new Set<() => void>();
const system = globalThis.matchMedia?.('(prefers-color-scheme: dark)');

system?.addEventListener('change', () => apply());

/** The theme that was chosen, or `system`. */
export function useThemeChoice(): [ThemeChoice, (choice: ThemeChoice) => void] {
  return [useSyncExternalStore(subscribe, read, read), choose];
}

/** The theme that is shown. */
export function useTheme(): Theme {
  const choice = useSyncExternalStore(subscribe, read, read);
  return choice === 'system' ? ofSystem() : choice;
}

function choose(choice: ThemeChoice): void {
  try {
    if (choice === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch {
    // Storage may be blocked; then the choice lasts as long as the page.
  }
  apply();
}

function apply(): void {
  const choice = read();
  document.documentElement.dataset.theme = choice === 'system' ? ofSystem() : choice;
  for (const listener of listeners) listener();
}

function read(): ThemeChoice {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch {
    return 'system';
  }
}

function ofSystem(): Theme {
  return system?.matches ? 'dark' : 'light';
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
