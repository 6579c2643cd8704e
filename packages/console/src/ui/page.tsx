import type { ReactNode } from 'react';
import { classNames } from './class-names.ts';
import styles from './page.module.css';

export interface PageProps {
  readonly title: ReactNode;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  /** How the body is laid out: `padded` scrolls as one, `narrow` also bounds its width, `filled` does neither. */
  readonly layout?: 'padded' | 'narrow' | 'filled';
  readonly children: ReactNode;
}

/** A screen: its head and its body. */
export function Page({ title, description, actions, layout = 'narrow', children }: PageProps) {
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <div className={styles.words}>
          <h1 className={styles.titles}>{title}</h1>
          {description && <div className={styles.description}>{description}</div>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {layout === 'filled' ? (
        children
      ) : (
        // Focusable, so that the keyboard can scroll it.
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
        <section className={styles.body} tabIndex={0} aria-label="Content">
          <div className={classNames(styles.padded, layout === 'narrow' && styles.narrow)}>{children}</div>
        </section>
      )}
    </div>
  );
}

export interface SplitProps {
  readonly list: ReactNode;
  readonly detail: ReactNode;
  /** Whether something is chosen: on a narrow screen only one side is shown. */
  readonly open: boolean;
  /** Gives the list about half of the width. */
  readonly wideList?: boolean;
}

/** A list and the detail of what is chosen in it. */
export function Split({ list, detail, open, wideList = false }: SplitProps) {
  return (
    <div className={classNames(styles.split, wideList && styles.wideList)} data-open={open}>
      <div className={styles.list}>{list}</div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard */}
      <section className={styles.detail} tabIndex={0} aria-label="Detail">
        {detail}
      </section>
    </div>
  );
}

export interface SectionProps {
  readonly title: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A titled part of a screen. */
export function Section({ title, actions, children }: SectionProps) {
  return (
    <section className={styles.section}>
      <div className={styles.sectionHead}>
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** A bordered surface. Never inside another one. */
export function Panel({ children }: { readonly children: ReactNode }) {
  return <div className={styles.panel}>{children}</div>;
}
