import type { KeyboardEvent, ReactNode } from 'react';
import styles from './tabs.module.css';

export interface Tab<T extends string> {
  readonly id: T;
  readonly label: ReactNode;
  readonly count?: number | undefined;
}

export interface TabsProps<T extends string> {
  readonly label: string;
  readonly tabs: ReadonlyArray<Tab<T>>;
  readonly chosen: T;
  readonly onChoose: (id: T) => void;
}

/** A row of tabs; arrow keys move between them. The panel is the caller's, with `tabPanel(id)`. */
export function Tabs<T extends string>({ label, tabs, chosen, onChoose }: TabsProps<T>) {
  const move = (event: KeyboardEvent<HTMLDivElement>): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    const at = tabs.findIndex(({ id }) => id === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next.id);
    event.currentTarget.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <div className={styles.tabs} role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(({ id, label: words, count }) => (
        <button
          key={id}
          type="button"
          role="tab"
          data-tab={id}
          aria-selected={id === chosen}
          tabIndex={id === chosen ? 0 : -1}
          className={styles.tab}
          onClick={() => onChoose(id)}
        >
          {words}
          {count !== undefined && <span className={styles.count}>{count.toLocaleString('en')}</span>}
        </button>
      ))}
    </div>
  );
}
