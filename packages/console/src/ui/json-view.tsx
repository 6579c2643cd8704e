import { ChevronRight, Search } from 'lucide-react';
import { useMemo, useState } from 'react';
import { classNames } from './class-names.ts';
import { copyText } from './copy.ts';
import { CopyButton } from './copy-button.tsx';
import { childrenOf, isBranch, matches, summary } from './json-tree.ts';
import styles from './json-view.module.css';
import { showControls } from './visible-text.ts';

/** Members that are drawn until somebody asks for more. */
const PAGE = 100;
/** Characters of a text that are drawn until somebody asks for more. */
const TEXT_MAX = 400;
const MATCHES_MAX = 200;
/** Values of this many lines or more have a search. */
const SEARCH_FROM = 12;

export interface JsonViewProps {
  readonly value: unknown;
  /** Levels that are open at first; 1 by default. */
  readonly open?: number;
  readonly label?: string;
}

/** A JSON value as a tree. Only what is open is drawn, so a large value costs no more than a small one. */
export function JsonView({ value, open = 1, label = 'JSON' }: JsonViewProps) {
  const [text, setText] = useState('');
  const hasTools = isBranch(value);
  const isLarge = useMemo(() => hasTools && countUpTo(value, SEARCH_FROM) >= SEARCH_FROM, [hasTools, value]);
  return (
    <div className={styles.view}>
      {isLarge && (
        <div className={styles.tools}>
          <Search size={12} aria-hidden="true" />
          <input
            type="search"
            aria-label={`Search in ${label}`}
            placeholder="Search"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <CopyButton text={() => JSON.stringify(value, null, 2)} label={`Copy ${label}`} />
        </div>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long tree is scrolled with the keyboard */}
      <section className={styles.tree} tabIndex={0} aria-label={label}>
        {text === '' ? <Value value={value} pointer="" open={open} /> : <Found value={value} text={text} />}
      </section>
    </div>
  );
}

interface NodeProps {
  readonly name?: string;
  readonly value: unknown;
  readonly pointer: string;
  readonly open: number;
}

function Value(props: NodeProps) {
  return isBranch(props.value) ? <Branch {...props} value={props.value} /> : <Leaf {...props} />;
}

function Branch({ name, value, pointer, open }: NodeProps & { readonly value: object }) {
  const [isOpen, setOpen] = useState(open > 0);
  const [shown, setShown] = useState(PAGE);
  const members = useMemo(() => (isOpen ? childrenOf(value, pointer) : []), [isOpen, value, pointer]);
  return (
    <div>
      <div className={styles.row}>
        <button
          type="button"
          className={styles.toggle}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <ChevronRight aria-hidden="true" />
          {name !== undefined && <span className={styles.key}>{showControls(name)}:</span>}
          <span className={styles.summary}>{summary(value)}</span>
        </button>
        <Actions value={value} pointer={pointer} />
      </div>
      {isOpen && (
        <div className={styles.branch}>
          {members.slice(0, shown).map((member) => (
            <Value
              key={member.pointer}
              name={member.name}
              value={member.value}
              pointer={member.pointer}
              open={open - 1}
            />
          ))}
          {members.length > shown && (
            <button type="button" className={styles.more} onClick={() => setShown(shown + PAGE)}>
              {(members.length - shown).toLocaleString('en')} more…
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf({ name, value, pointer }: Omit<NodeProps, 'open'>) {
  return (
    <div className={styles.row}>
      {name !== undefined && (
        <span className={classNames(styles.key, styles.leaf)}>{showControls(name)}:</span>
      )}
      <Primitive value={value} />
      <Actions value={value} pointer={pointer} />
    </div>
  );
}

function Primitive({ value }: { readonly value: unknown }) {
  const [all, setAll] = useState(false);
  if (typeof value !== 'string')
    return (
      <span className={classNames(styles.value, typeof value === 'number' ? styles.number : styles.literal)}>
        {String(value)}
      </span>
    );
  const isCut = !all && value.length > TEXT_MAX;
  return (
    <span className={classNames(styles.value, styles.string)}>
      “{showControls(isCut ? value.slice(0, TEXT_MAX) : value)}
      {isCut ? '…' : '”'}
      {isCut && (
        <button type="button" className={styles.more} onClick={() => setAll(true)}>
          {(value.length - TEXT_MAX).toLocaleString('en')} more characters
        </button>
      )}
    </span>
  );
}

function Actions({ value, pointer }: { readonly value: unknown; readonly pointer: string }) {
  return (
    <span className={styles.act}>
      <button
        type="button"
        title="Copy the value"
        onClick={() => void copyText(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}
      >
        value
      </button>
      {pointer !== '' && (
        <button type="button" title={`Copy ${pointer}`} onClick={() => void copyText(pointer)}>
          pointer
        </button>
      )}
    </span>
  );
}

function Found({ value, text }: { readonly value: unknown; readonly text: string }) {
  const found = useMemo(() => matches(value, text, MATCHES_MAX), [value, text]);
  if (found.length === 0) return <p className={styles.summary}>Nothing matches “{text}”.</p>;
  return (
    <>
      {found.map((match) => (
        <div key={match.pointer} className={styles.row}>
          <span className={styles.pointer}>{match.pointer}</span>
          <Value value={match.value} pointer={match.pointer} open={0} />
        </div>
      ))}
      {found.length === MATCHES_MAX && (
        <p className={styles.summary}>Only the first {MATCHES_MAX} are shown.</p>
      )}
    </>
  );
}

function countUpTo(value: unknown, max: number): number {
  let count = 0;
  const left: unknown[] = [value];
  while (left.length > 0 && count < max) {
    const next = left.pop();
    count += 1;
    if (isBranch(next)) left.push(...Object.values(next).slice(0, max));
  }
  return count;
}
