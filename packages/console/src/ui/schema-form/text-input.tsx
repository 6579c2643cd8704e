import { useState } from 'react';
import { Input, TextArea } from '../field.tsx';
import type { ControlProps } from './node.tsx';

/** From this `maxLength` on, or without one for names that promise prose, a text has several lines. */
const LONG_TEXT = 200;
const PROSE = /body|text|content|message|prompt|description|instructions|code|markdown|html|query/i;

const INPUT_TYPES: Readonly<Record<string, string>> = {
  email: 'email',
  uri: 'url',
  'uri-reference': 'url',
  date: 'date',
  time: 'time',
};

/** A text, with the browser's own control where the format has one. */
export function TextInput({ schema, value, onChange, required, name, id, notes, invalid }: ControlProps) {
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
  const common = {
    id,
    'aria-describedby': notes,
    'aria-invalid': invalid,
    value: text,
    placeholder: exampleOf(schema.examples),
    // An emptied optional member is left out, an emptied required one is an empty text.
    onChange: (event: { target: { value: string } }) =>
      onChange(event.target.value === '' && !required ? undefined : event.target.value),
  };
  if (schema.format === 'date-time') return <DateTimeInput {...common} set={onChange} />;
  const isLong = (schema.maxLength ?? 0) > LONG_TEXT || (!schema.format && PROSE.test(name ?? ''));
  if (isLong || text.includes('\n'))
    return <TextArea {...common} rows={Math.min(12, text.split('\n').length + 2)} />;
  return <Input {...common} type={INPUT_TYPES[schema.format ?? ''] ?? 'text'} />;
}

interface DateTimeProps {
  readonly id: string;
  readonly value: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
  readonly set: (value: unknown) => void;
}

/** A moment: chosen in local time, kept as RFC 3339 in UTC. */
function DateTimeInput({ value, set, ...rest }: DateTimeProps) {
  const at = new Date(value);
  const local = Number.isNaN(at.getTime())
    ? ''
    : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  return (
    <Input
      {...rest}
      type="datetime-local"
      value={local}
      onChange={(event) =>
        set(event.target.value === '' ? undefined : new Date(event.target.value).toISOString())
      }
    />
  );
}

/** A number. While the text is not one, the text itself is the value, so that the check can say so. */
export function NumberInput({ schema, value, onChange, id, notes, invalid }: ControlProps) {
  const [text, setText] = useState(value === undefined ? '' : String(value));
  const shown =
    Number(text) === value || typeof value === 'string' ? text : value === undefined ? '' : String(value);
  return (
    <Input
      id={id}
      inputMode={schema.type === 'integer' ? 'numeric' : 'decimal'}
      aria-describedby={notes}
      aria-invalid={invalid}
      value={shown}
      placeholder={exampleOf(schema.examples)}
      onChange={(event) => {
        const next = event.target.value;
        setText(next);
        const number = Number(next);
        onChange(next.trim() === '' ? undefined : Number.isNaN(number) ? next : number);
      }}
    />
  );
}

function exampleOf(examples: readonly unknown[] | undefined): string | undefined {
  const first = examples?.[0];
  return first === undefined
    ? undefined
    : `for example ${typeof first === 'string' ? first : JSON.stringify(first)}`;
}
