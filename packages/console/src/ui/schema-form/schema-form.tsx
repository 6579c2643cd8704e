import { useMemo, useState } from 'react';
import { AllProblems } from './all-problems.ts';
import { JsonText } from './json-text.tsx';
import { Node } from './node.tsx';
import type { Schema } from './schema.ts';
import styles from './schema-form.module.css';
import { problemsOf } from './validate.ts';

export interface SchemaFormProps {
  readonly schema: Schema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** Messages of the gateway by JSON pointer, shown beside the form's own. */
  readonly problems?: Readonly<Record<string, string>>;
  readonly label?: string;
  /** Tells what is missing also in fields that nobody has been to yet. */
  readonly tellAll?: boolean;
}

const NO_PROBLEMS = {};

/** Edits a value by its JSON Schema: as a form, or as JSON for what the form cannot say. Checks as one types. */
export function SchemaForm({
  schema,
  value,
  onChange,
  problems = NO_PROBLEMS,
  label = 'Input',
  tellAll = false,
}: SchemaFormProps) {
  const [mode, setMode] = useState<'form' | 'json'>('form');
  const found = useMemo(() => ({ ...problems, ...problemsOf(schema, value) }), [schema, value, problems]);
  return (
    <div className={styles.form}>
      <div className={styles.bar}>
        <span className={styles.legend}>{label}</span>
        <fieldset className={styles.modes}>
          <legend className="visually-hidden">How to edit</legend>
          <button type="button" aria-pressed={mode === 'form'} onClick={() => setMode('form')}>
            Form
          </button>
          <button type="button" aria-pressed={mode === 'json'} onClick={() => setMode('json')}>
            JSON
          </button>
        </fieldset>
      </div>
      {mode === 'form' ? (
        <AllProblems.Provider value={tellAll}>
          <Node
            schema={schema}
            root={schema}
            value={value}
            pointer=""
            required
            problems={found}
            onChange={onChange}
          />
        </AllProblems.Provider>
      ) : (
        <JsonText value={value} onChange={onChange} label={label} problems={found} />
      )}
    </div>
  );
}
