import { useId, useState } from 'react';
import { TextArea } from '../field.tsx';
import styles from './schema-form.module.css';

export interface JsonTextProps {
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly label: string;
  readonly problems: Readonly<Record<string, string>>;
}

/** A value as JSON text. While the text is not JSON, the value stays as it was. */
export function JsonText({ value, onChange, label, problems }: JsonTextProps) {
  const id = useId();
  const [text, setText] = useState(() => JSON.stringify(value, null, 2) ?? '');
  const [mistake, setMistake] = useState<string>();
  const edit = (next: string): void => {
    setText(next);
    try {
      onChange(next.trim() === '' ? undefined : JSON.parse(next));
      setMistake(undefined);
    } catch (error) {
      setMistake(error instanceof Error ? error.message : String(error));
    }
  };
  const messages = mistake
    ? [mistake]
    : Object.entries(problems).map(([at, words]) => `${at || '/'}: ${words}`);
  return (
    <div className={styles.group}>
      <TextArea
        mono
        rows={Math.min(18, Math.max(4, text.split('\n').length + 1))}
        spellCheck={false}
        aria-label={`${label} as JSON`}
        aria-describedby={id}
        aria-invalid={messages.length > 0}
        value={text}
        onChange={(event) => edit(event.target.value)}
      />
      <div id={id}>
        {messages.map((message) => (
          <p key={message} className={styles.error}>
            {message}
          </p>
        ))}
      </div>
    </div>
  );
}
