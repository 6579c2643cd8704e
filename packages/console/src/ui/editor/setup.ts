import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { javascript } from '@codemirror/lang-javascript';
import { json } from '@codemirror/lang-json';
import { markdown } from '@codemirror/lang-markdown';
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from '@codemirror/language';
import { lintGutter } from '@codemirror/lint';
import { EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';

export type Language = 'json' | 'markdown' | 'javascript';

/** Colours and sizes from the page's variables, which reach into the editor's shadow root. */
export const THEME = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '12.5px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6' },
  '.cm-content': { padding: '10px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 12px 0 8px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--text-3)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '&:not(.cm-focused) .cm-activeLine, &:not(.cm-focused) .cm-activeLineGutter': {
    backgroundColor: 'transparent',
  },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'var(--accent-soft)',
  },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)' },
  '.cm-foldPlaceholder': {
    border: 'none',
    backgroundColor: 'var(--hover)',
    color: 'var(--text-2)',
    padding: '0 6px',
  },
  '.cm-tooltip': {
    border: '1px solid var(--border)',
    borderRadius: '6px',
    backgroundColor: 'var(--raised)',
    color: 'var(--text)',
  },
  '.cm-diagnostic': { fontFamily: 'var(--font)', padding: '6px 10px', maxWidth: '60ch' },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--red-solid)' },
  '.cm-diagnostic-warning': { borderLeft: '3px solid var(--amber-solid)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--red-solid) 1px',
    textUnderlineOffset: '3px',
  },
  '.cm-lintRange-warning': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--amber-solid) 1px',
    textUnderlineOffset: '3px',
  },
  '.cm-changedLine': { backgroundColor: 'var(--green-soft) !important' },
  '.cm-deletedChunk': { backgroundColor: 'var(--red-soft)', paddingLeft: '8px' },
  '.cm-changedText': {
    background: 'none',
    backgroundColor: 'color-mix(in srgb, var(--green-solid) 25%, transparent)',
  },
  '.cm-deletedText, .cm-deletedChunk .cm-deletedText': {
    background: 'none',
    backgroundColor: 'color-mix(in srgb, var(--red-solid) 25%, transparent)',
  },
  '.cm-collapsedLines': {
    background: 'var(--sunken)',
    color: 'var(--text-2)',
    padding: '4px 12px',
    fontFamily: 'var(--font)',
    // The library's own mark is in none of the page's fonts.
    '&:before, &:after': { content: '"⋯"' },
  },
});

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent-text)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--green)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--blue)' },
  { tag: [tags.keyword, tags.heading], color: 'var(--violet)', fontWeight: '600' },
  { tag: [tags.comment, tags.meta, tags.processingInstruction], color: 'var(--text-3)' },
  { tag: tags.link, color: 'var(--accent-text)' },
  { tag: tags.strong, fontWeight: '600' },
  { tag: tags.emphasis, fontStyle: 'italic' },
]);

/** What editors and diffs share: colours, language, wrapped lines. */
export function reading(language: Language): Extension[] {
  return [
    THEME,
    syntaxHighlighting(HIGHLIGHT),
    language === 'json' ? json() : language === 'markdown' ? markdown() : javascript(),
    EditorView.lineWrapping,
    highlightSpecialChars(),
  ];
}

/** What an editor has: history, folding, brackets, problems in the margin. */
export function writing(language: Language): Extension[] {
  return [
    ...reading(language),
    lineNumbers(),
    foldGutter(),
    lintGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of('  '),
    EditorState.tabSize.of(2),
    bracketMatching(),
    highlightActiveLine(),
    keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, indentWithTab]),
  ];
}
