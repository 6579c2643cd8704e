import { Check } from 'lucide-react';
import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';
import { IconButton } from './button.tsx';
import { classNames } from './class-names.ts';
import styles from './menu.module.css';

/** A row of a menu: an action, a heading or a line. */
export type MenuItem =
  | {
      readonly label: string;
      readonly icon?: ReactNode;
      readonly danger?: boolean;
      readonly disabled?: boolean;
      /** For a choice of several: whether it is the one. */
      readonly checked?: boolean;
      readonly onSelect: () => void;
    }
  | { readonly head: ReactNode }
  | 'line';

export interface MenuProps {
  readonly label: string;
  readonly icon: ReactNode;
  readonly items: readonly MenuItem[];
}

/** A button that opens a menu. The browser closes it on Escape and on a click elsewhere. */
export function Menu({ label, icon, items }: MenuProps) {
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const place = (): void => {
    const from = button.current?.getBoundingClientRect();
    if (!menu.current || !from) return;
    menu.current.style.top = `${from.bottom + 4}px`;
    menu.current.style.right = `${Math.max(8, globalThis.innerWidth - from.right)}px`;
  };
  return (
    <>
      <IconButton
        ref={button}
        label={label}
        icon={icon}
        aria-haspopup="menu"
        popoverTarget={id}
        onClick={place}
      />
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        className={styles.menu}
        onKeyDown={moveFocus}
        onToggle={(event) => {
          if (event.newState === 'open') menu.current?.querySelector<HTMLElement>('button')?.focus();
        }}
      >
        {items.map((item, index) => (
          <Row key={index} item={item} close={() => menu.current?.hidePopover()} />
        ))}
      </div>
    </>
  );
}

function Row({ item, close }: { readonly item: MenuItem; readonly close: () => void }) {
  if (item === 'line') return <hr className={styles.line} />;
  if ('head' in item) return <div className={styles.head}>{item.head}</div>;
  const { label, icon, danger = false, disabled = false, checked, onSelect } = item;
  return (
    <button
      type="button"
      role={checked === undefined ? 'menuitem' : 'menuitemradio'}
      {...(checked !== undefined && { 'aria-checked': checked })}
      disabled={disabled}
      className={classNames(styles.item, danger && styles.danger)}
      onClick={() => {
        close();
        onSelect();
      }}
    >
      {checked ? <Check aria-hidden="true" /> : icon}
      {label}
    </button>
  );
}

function moveFocus(event: KeyboardEvent<HTMLDivElement>): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const rows = [...event.currentTarget.querySelectorAll<HTMLButtonElement>('button:not(:disabled)')];
  const at = rows.indexOf(document.activeElement as HTMLButtonElement);
  rows[(at + step + rows.length) % rows.length]?.focus();
}
