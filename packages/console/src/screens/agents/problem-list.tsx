import { CircleX, TriangleAlert } from 'lucide-react';
import type { TextProblem } from '../../ui/editor/lazy.tsx';
import { showControls } from '../../ui/visible-text.ts';
import styles from './agents.module.css';

export interface ProblemListProps {
  readonly text: string;
  readonly problems: readonly TextProblem[];
  readonly onChoose: (problem: TextProblem) => void;
}

/** The problems of a text with their lines; a click leads there. */
export function ProblemList({ text, problems, onChoose }: ProblemListProps) {
  if (problems.length === 0) return null;
  return (
    <div className={styles.problems} role="status" aria-label="Problems">
      <ul>
        {problems.map((problem) => (
          <li key={`${problem.from} ${problem.message}`}>
            <button type="button" data-severity={problem.severity} onClick={() => onChoose(problem)}>
              {problem.severity === 'error' ? (
                <CircleX aria-label="Error" />
              ) : (
                <TriangleAlert aria-label="Warning" />
              )}
              <span className={styles.line}>Line {lineOf(text, problem.from)}</span>
              <span>{showControls(problem.message)}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The number of the line at an offset, from 1. */
function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}
