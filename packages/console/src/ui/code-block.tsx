import { useState } from 'react';
import { Button } from './button.tsx';
import { classNames } from './class-names.ts';
import styles from './code-block.module.css';
import { CopyButton } from './copy-button.tsx';
import { formatBytes } from './format.ts';
import { showControls } from './visible-text.ts';

/** Characters that are shown until somebody asks for more. */
const SHOWN_MAX = 20_000;

export interface CodeBlockProps {
  readonly text: string;
  readonly language?: string | undefined;
  readonly wrap?: boolean;
}

/** A text in monospace with a button that copies it. */
export function CodeBlock({ text, language, wrap = false }: CodeBlockProps) {
  const [all, setAll] = useState(false);
  const shown = all ? text : text.slice(0, SHOWN_MAX);
  return (
    <div className={classNames(styles.block, wrap && styles.wrapped)}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long block is scrolled with the keyboard */}
      <section className={styles.scroll} tabIndex={0} aria-label={language ? `Code, ${language}` : 'Code'}>
        <pre>
          <code>{showControls(shown)}</code>
        </pre>
      </section>
      <div className={styles.copy}>
        <CopyButton text={text} />
      </div>
      {shown.length < text.length && (
        <Button variant="ghost" size="small" onClick={() => setAll(true)}>
          Show all {formatBytes(text.length)}
        </Button>
      )}
    </div>
  );
}
