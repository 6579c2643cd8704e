import { CircleAlert, CircleCheck, X } from 'lucide-react';
import { useSyncExternalStore } from 'react';
import { describeError } from '../data/describe-error.ts';
import { IconButton } from './button.tsx';
import styles from './toast.module.css';
import { showControls } from './visible-text.ts';

interface Toast {
  readonly id: number;
  readonly kind: 'done' | 'error';
  readonly text: string;
  readonly code?: string;
}

const SHOWN_MS = 6000;
const TOASTS_MAX = 4;

let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

/** Tells that something was done. */
export function toast(text: string): void {
  add({ id: ++count, kind: 'done', text });
}

/** Tells that something failed, with its code. */
export function toastError(error: unknown): void {
  const { title, detail, code } = describeError(error);
  add({ id: ++count, kind: 'error', text: detail || title, code });
}

function add(added: Toast): void {
  publish([...toasts, added].slice(-TOASTS_MAX));
  setTimeout(() => dismiss(added.id), SHOWN_MS);
}

function dismiss(id: number): void {
  publish(toasts.filter((one) => one.id !== id));
}

function publish(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The place where toasts are shown; once per page. */
export function Toasts() {
  const shown = useSyncExternalStore(
    subscribe,
    () => toasts,
    () => toasts,
  );
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {shown.map(({ id, kind, text, code }) => (
        <div key={id} className={styles.toast} data-kind={kind}>
          {kind === 'done' ? <CircleCheck aria-hidden="true" /> : <CircleAlert aria-hidden="true" />}
          <p className={styles.text}>
            {showControls(text)}
            {code && <span className={styles.code}> {code}</span>}
          </p>
          <IconButton size="small" label="Dismiss" icon={<X />} onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
