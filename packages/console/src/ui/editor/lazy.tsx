import { lazy, Suspense } from 'react';
import { Loading } from '../states.tsx';
import type { CodeEditorProps } from './code-editor.tsx';
import type { DiffViewProps } from './diff-view.tsx';

export type { TextProblem } from './code-editor.tsx';

const Editor = lazy(() => import('./code-editor.tsx'));
const Diff = lazy(() => import('./diff-view.tsx'));

/** The editor, loaded when it is first shown. */
export function CodeEditor(props: CodeEditorProps) {
  return (
    <Suspense fallback={<Loading rows={8} label="Loading the editor" />}>
      <Editor {...props} />
    </Suspense>
  );
}

/** The diff, loaded when it is first shown. */
export function DiffView(props: DiffViewProps) {
  return (
    <Suspense fallback={<Loading rows={6} label="Loading the diff" />}>
      <Diff {...props} />
    </Suspense>
  );
}
