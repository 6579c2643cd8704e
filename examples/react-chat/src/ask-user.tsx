import type { ToolComponentProps } from '@toolgate/react';
import { useState } from 'react';

interface Question {
  question: string;
  choices: string[];
}

/** Is the executor of `askUser`: what the user clicks is the result. */
export function AskUser({ input, output, isOpen, submit }: ToolComponentProps<Question, string>) {
  const [problem, setProblem] = useState<string>();
  if (!input) return null;
  const choose = (choice: string) => submit(choice).catch((error: Error) => setProblem(error.message));
  return (
    <fieldset className="ask">
      <legend>{input.question}</legend>
      {input.choices.map((choice) => (
        <button
          key={choice}
          type="button"
          aria-pressed={output === choice}
          disabled={!isOpen}
          onClick={() => choose(choice)}
        >
          {choice}
        </button>
      ))}
      {problem && <p role="alert">{problem}</p>}
    </fieldset>
  );
}
