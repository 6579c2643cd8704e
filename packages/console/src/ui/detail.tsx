import { ArrowLeft } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import styles from './detail.module.css';
import { showControlsIn } from './visible-text.ts';

export interface DetailHeadProps {
  readonly title: ReactNode;
  /** The list that a narrow screen goes back to. */
  readonly back: string;
  readonly badges?: ReactNode;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
}

/** The head of a detail beside its list; where the list is hidden, it has the way back. */
export function DetailHead({ title, back, badges, about, actions }: DetailHeadProps) {
  return (
    <header className={styles.head}>
      <Link href={back} className={styles.back} aria-label="Back to the list">
        <ArrowLeft />
      </Link>
      <div className={styles.words}>
        <div className={styles.titles}>
          <h2>{showControlsIn(title)}</h2>
          {badges}
        </div>
        {about && <div className={styles.about}>{showControlsIn(about)}</div>}
      </div>
      {actions && <div className={styles.actions}>{actions}</div>}
    </header>
  );
}

/** The padded body of a detail. */
export function DetailBody({ children }: { readonly children: ReactNode }) {
  return <div className={styles.body}>{children}</div>;
}

/** A message beside what it is about: a warning, a reason, a hint. */
export function Note({
  tone = 'neutral',
  icon,
  actions,
  children,
}: {
  readonly tone?: 'neutral' | 'amber' | 'red' | 'blue';
  readonly icon?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <div className={styles.note} data-tone={tone} role={tone === 'red' ? 'alert' : undefined}>
      {icon}
      <div className={styles.noteWords}>{children}</div>
      {actions}
    </div>
  );
}
