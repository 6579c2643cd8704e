import { X } from 'lucide-react';
import { type ReactNode, useEffect, useId, useRef } from 'react';
import { IconButton } from './button.tsx';
import { classNames } from './class-names.ts';
import styles from './dialog.module.css';
import { showControlsIn } from './visible-text.ts';

export interface DialogProps {
  readonly title: ReactNode;
  readonly onClose: () => void;
  readonly footer?: ReactNode;
  readonly wide?: boolean;
  /** Keeps a click beside it and Escape from closing it: for what cannot be shown again. */
  readonly stays?: boolean;
  readonly children: ReactNode;
}

/** A modal dialog: the browser traps focus in it and gives it back; Escape closes it. */
export function Dialog({ title, onClose, footer, wide = false, stays = false, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, a click on the backdrop does too
    <dialog
      ref={ref}
      className={classNames(styles.dialog, wide && styles.wide)}
      aria-labelledby={titleId}
      // Without it, the browser closes a dialog at the second Escape, whatever the first was answered.
      {...(stays && { closedby: 'none' })}
      onCancel={(event) => {
        event.preventDefault();
        if (!stays) onClose();
      }}
      onClick={(event) => event.target === ref.current && !stays && onClose()}
    >
      <div className={styles.head}>
        <h2 id={titleId}>{showControlsIn(title)}</h2>
        <IconButton label="Close" icon={<X />} onClick={onClose} />
      </div>
      <div className={styles.body}>{children}</div>
      {footer && <div className={styles.foot}>{footer}</div>}
    </dialog>
  );
}
