import { CircleAlert, Lock, RotateCw } from 'lucide-react';
import type { ReactNode } from 'react';
import { describeError, isForbidden } from '../data/describe-error.ts';
import { Button } from './button.tsx';
import styles from './states.module.css';
import { showControls } from './visible-text.ts';

export interface EmptyProps {
  readonly icon: ReactNode;
  readonly title: string;
  /** What would be here. */
  readonly children?: ReactNode;
  /** The button that makes the first one. */
  readonly actions?: ReactNode;
}

/** What stands where a list has no rows. */
export function Empty({ icon, title, children, actions }: EmptyProps) {
  return (
    <div className={styles.state}>
      <span className={styles.mark} aria-hidden="true">
        {icon}
      </span>
      <p className={styles.title}>{showControls(title)}</p>
      {children && <p className={styles.text}>{children}</p>}
      {actions && <div className={styles.actions}>{actions}</div>}
    </div>
  );
}

/** Bars where content will be. */
export function Loading({
  rows = 6,
  label = 'Loading',
}: {
  readonly rows?: number;
  readonly label?: string;
}) {
  return (
    <div className={styles.skeleton} role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className={styles.bar} />
      ))}
    </div>
  );
}

export interface ErrorStateProps {
  readonly error: unknown;
  readonly retry?: () => void;
  /** The way to the list, where the detail is all that a narrow screen shows. */
  readonly back?: ReactNode;
}

/** An error with its code and a way to try again; one of access is told apart. */
export function ErrorState({ error, retry, back }: ErrorStateProps) {
  if (isForbidden(error)) return <Forbidden error={error} />;
  const { title, detail, code, requestId } = describeError(error);
  return (
    <div className={styles.state} role="alert">
      <span className={styles.mark} aria-hidden="true">
        <CircleAlert />
      </span>
      <p className={styles.title}>{title}</p>
      <p className={styles.text}>{showControls(detail)}</p>
      <p className={styles.facts}>
        <span>{code}</span>
        {requestId && <span>request {requestId}</span>}
      </p>
      {(retry || back) && (
        <div className={styles.actions}>
          {retry && (
            <Button icon={<RotateCw />} onClick={retry}>
              Try again
            </Button>
          )}
          {back}
        </div>
      )}
    </div>
  );
}

function Forbidden({ error }: { readonly error: unknown }) {
  const { detail, code } = describeError(error);
  return (
    <div className={styles.state} role="alert">
      <span className={styles.mark} aria-hidden="true">
        <Lock />
      </span>
      <p className={styles.title}>This is not open to your session</p>
      <p className={styles.text}>{showControls(detail)}</p>
      <p className={styles.facts}>{code}</p>
    </div>
  );
}
