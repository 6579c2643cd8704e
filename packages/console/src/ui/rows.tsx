import { type KeyboardEvent, type ReactNode, useEffect, useRef } from 'react';
import { Link } from 'wouter';
import styles from './rows.module.css';
import { showControlsIn } from './visible-text.ts';

/** A row of a list that leads to its detail. */
export interface Row {
  readonly id: string;
  readonly href: string;
  readonly title: ReactNode;
  /** Second line. */
  readonly about?: ReactNode;
  /** On the right of the first line. */
  readonly aside?: ReactNode;
}

export interface RowsProps {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly chosen?: string | undefined;
}

/** The list beside a detail. Arrow keys move between rows, Enter opens one. */
export function Rows({ label, rows, chosen }: RowsProps) {
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    if (chosen !== undefined)
      list.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  return (
    <nav ref={list} className={styles.rows} aria-label={label} onKeyDown={moveFocus}>
      {rows.map(({ id, href, title, about, aside }) => (
        <Link key={id} href={href} className={styles.row} aria-current={id === chosen ? 'page' : undefined}>
          <span className={styles.line}>
            <span className={styles.title}>{showControlsIn(title)}</span>
            {aside && <span className={styles.aside}>{aside}</span>}
          </span>
          {about && <span className={styles.about}>{showControlsIn(about)}</span>}
        </Link>
      ))}
    </nav>
  );
}

/** What stands above the rows: a search, a filter, a button. */
export function RowsHead({ children }: { readonly children: ReactNode }) {
  return <div className={styles.head}>{children}</div>;
}

function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const step =
    event.key === 'ArrowDown' || event.key === 'j'
      ? 1
      : event.key === 'ArrowUp' || event.key === 'k'
        ? -1
        : 0;
  if (step === 0) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('a')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[at + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
