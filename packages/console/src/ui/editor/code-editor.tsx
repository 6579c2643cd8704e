import { type Diagnostic, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import styles from './editor.module.css';
import { type Language, writing } from './setup.ts';
import { shadowRootOf } from './shadow-root.ts';

/** A message at a place of the text. */
export interface TextProblem {
  readonly from: number;
  readonly to: number;
  readonly severity: 'error' | 'warning';
  readonly message: string;
}

export interface CodeEditorProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly language: Language;
  readonly problems?: readonly TextProblem[];
  /** Called on Ctrl+S. */
  readonly onSave?: () => void;
  /** Moves the cursor there whenever the object changes. */
  readonly reveal?: { readonly at: number } | undefined;
}

const NO_PROBLEMS: readonly TextProblem[] = [];

/**
 * An editor for JSON, Markdown or JavaScript. Tab indents; Escape and then Tab leaves it. Load it lazily: it brings
 * the editor library.
 */
export default function CodeEditor(props: CodeEditorProps) {
  const { label, value, language, problems = NO_PROBLEMS, reveal } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  // Texts that came from the editor. Someone who types fast is ahead of the page, which must not put an earlier text back.
  const typed = useRef(new Set<string>());
  useEffect(() => {
    if (!host.current) return;
    const root = shadowRootOf(host.current);
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          keymap.of([{ key: 'Mod-s', run: () => save(latest.current), preventDefault: true }]),
          ...writing(language),
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', tabindex: '0' }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            const text = update.state.doc.toString();
            typed.current.add(text);
            latest.current.onChange(text);
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [label, language]);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const isCurrent = editor.state.doc.toString() === value;
    const isTyped = typed.current.has(value);
    if (isCurrent) typed.current.clear();
    if (isCurrent || isTyped) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const end = editor.state.doc.length;
    const found: Diagnostic[] = problems.map(({ from, to, severity, message }) => ({
      from: Math.min(from, end),
      to: Math.min(Math.max(to, from), end),
      severity,
      message,
    }));
    editor.dispatch(setDiagnostics(editor.state, found));
  }, [problems]);
  useEffect(() => {
    const editor = view.current;
    if (!editor || !reveal) return;
    const at = Math.min(reveal.at, editor.state.doc.length);
    editor.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) });
    editor.focus();
  }, [reveal]);
  return <div ref={host} className={styles.editor} data-editor={label} />;
}

function save({ onSave }: CodeEditorProps): boolean {
  onSave?.();
  return onSave !== undefined;
}
