import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { showControls } from '../ui/visible-text.ts';
import { type Command, rank, useCommands } from './commands.tsx';
import styles from './palette.module.css';

/** Jumps to a screen, an agent, a tool or an id, or does something. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const listId = useId();
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const commands = useCommands(text);
  const found = useMemo(() => rank(commands, text), [commands, text]);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  useEffect(() => {
    dialog.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  });
  const choose = (command: Command | undefined): void => {
    if (!command) return;
    onClose();
    if (command.href !== undefined) navigate(command.href);
    else command.run?.();
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && found.length > 0) {
      event.preventDefault();
      setAt((at + step + found.length) % found.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      choose(found[at]);
    }
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, a click on the backdrop does too
    <dialog
      ref={dialog}
      className={styles.palette}
      aria-label="Command palette"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <input
        className={styles.input}
        role="combobox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={found[at] ? `${listId}-${at}` : undefined}
        aria-label="Search or jump to"
        placeholder="Search or jump to…"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        value={text}
        onKeyDown={press}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
      />
      <div className={styles.list} id={listId} role="listbox" aria-label="Results">
        {found.length === 0 && <p className={styles.none}>Nothing is called “{text}”.</p>}
        {found.map((command, index) => (
          <div key={command.id}>
            {found[index - 1]?.group !== command.group && (
              <div className={styles.group} role="presentation">
                {command.group}
              </div>
            )}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keyboard */}
            <div
              id={`${listId}-${index}`}
              className={styles.row}
              role="option"
              tabIndex={-1}
              aria-selected={index === at}
              onMouseMove={() => setAt(index)}
              onClick={() => choose(command)}
            >
              {command.icon}
              <span className={styles.title}>{showControls(command.title)}</span>
              <span className={styles.about}>{showControls(command.about)}</span>
            </div>
          </div>
        ))}
      </div>
    </dialog>
  );
}
