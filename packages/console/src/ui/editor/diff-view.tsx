import { unifiedMergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import styles from './editor.module.css';
import { type Language, reading } from './setup.ts';
import { shadowRootOf } from './shadow-root.ts';

export interface DiffViewProps {
  readonly label: string;
  readonly before: string;
  readonly after: string;
  readonly language: Language;
}

/** Shows what changed between two texts, line by line. Load it lazily: it brings the editor library. */
export default function DiffView({ label, before, after, language }: DiffViewProps) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!host.current) return;
    const root = shadowRootOf(host.current);
    const view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: after,
        extensions: [
          ...reading(language),
          EditorState.readOnly.of(true),
          EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true', tabindex: '0' }),
          unifiedMergeView({
            original: before,
            mergeControls: false,
            gutter: true,
            syntaxHighlightDeletions: false,
            collapseUnchanged: { margin: 3, minSize: 6 },
          }),
        ],
      }),
    });
    return () => view.destroy();
  }, [label, before, after, language]);
  return <div ref={host} className={styles.diff} data-diff={label} />;
}
