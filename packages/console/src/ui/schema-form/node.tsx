import { useContext, useId, useState } from 'react';
import { Checkbox, Select } from '../field.tsx';
import { AllProblems } from './all-problems.ts';
import { ArrayNode } from './array-node.tsx';
import { JsonText } from './json-text.tsx';
import { ObjectNode } from './object-node.tsx';
import { choiceName, choicesOf, chosenIndex, initialValue, kindOf, resolve, type Schema } from './schema.ts';
import styles from './schema-form.module.css';
import { NumberInput, TextInput } from './text-input.tsx';

export interface NodeProps {
  readonly schema: Schema;
  readonly root: Schema;
  readonly value: unknown;
  readonly pointer: string;
  /** Name of the member; the whole value has none. */
  readonly name?: string;
  readonly required: boolean;
  readonly problems: Readonly<Record<string, string>>;
  readonly onChange: (value: unknown) => void;
}

/** One value of a form, by the kind of its schema. */
export function Node(props: NodeProps) {
  const schema = resolve(props.schema, props.root);
  const next = { ...props, schema };
  switch (kindOf(schema)) {
    case 'object':
      return <ObjectNode {...next} />;
    case 'array':
      return <ArrayNode {...next} />;
    case 'choice':
      return <ChoiceNode {...next} />;
    case 'boolean':
      return <BooleanNode {...next} />;
    case 'null':
      return null;
    default:
      return <Labelled {...next} />;
  }
}

/** A control with its label, hint and problem. */
function Labelled(props: NodeProps) {
  const { schema, name, required, pointer, problems } = props;
  const id = useId();
  const notes = useId();
  const [isTouched, setTouched] = useState(false);
  // An empty form is no mistake: what is missing is told when one has passed by, or tried to send it.
  const isTold = useContext(AllProblems) || isTouched || props.value !== undefined;
  const problem = isTold ? problems[pointer] : undefined;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only hears that the focus has left its control
    <div className={styles.leaf} onBlur={() => setTouched(true)}>
      {name === undefined ? (
        <label className="visually-hidden" htmlFor={id}>
          {schema.title ?? 'Item'}
        </label>
      ) : (
        <label className={styles.label} htmlFor={id}>
          {schema.title ?? <code>{name}</code>}
          {!required && <span className={styles.optional}> optional</span>}
        </label>
      )}
      <Control {...props} id={id} notes={notes} invalid={problem !== undefined} />
      <div id={notes}>
        {problem ? (
          <p className={styles.error}>{problem}</p>
        ) : (
          schema.description && <p className={styles.hint}>{schema.description}</p>
        )}
      </div>
    </div>
  );
}

export interface ControlProps extends NodeProps {
  readonly id: string;
  readonly notes: string;
  readonly invalid: boolean;
}

function Control(props: ControlProps) {
  switch (kindOf(props.schema)) {
    case 'string':
      return <TextInput {...props} />;
    case 'number':
    case 'integer':
      return <NumberInput {...props} />;
    case 'enum':
      return <EnumSelect {...props} />;
    case 'const':
      return <code id={props.id}>{JSON.stringify(props.schema.const)}</code>;
    default:
      return (
        <JsonText value={props.value} onChange={props.onChange} label={props.name ?? 'Value'} problems={{}} />
      );
  }
}

function EnumSelect({ schema, value, onChange, required, id, notes, invalid }: ControlProps) {
  const values = schema.enum ?? [];
  const at = values.indexOf(value);
  return (
    <Select
      id={id}
      aria-describedby={notes}
      aria-invalid={invalid}
      value={at < 0 ? '' : at}
      onChange={(event) =>
        onChange(event.target.value === '' ? undefined : values[Number(event.target.value)])
      }
    >
      {(at < 0 || !required) && <option value="">{required ? 'Choose…' : 'Not set'}</option>}
      {values.map((one, index) => (
        <option key={String(one)} value={index}>
          {typeof one === 'string' ? one : JSON.stringify(one)}
        </option>
      ))}
    </Select>
  );
}

function BooleanNode({ schema, value, name, pointer, problems, onChange }: NodeProps) {
  const problem = problems[pointer];
  return (
    <div className={styles.group}>
      <Checkbox
        checked={value === true}
        onChange={(event) => onChange(event.target.checked)}
        label={schema.title ?? <code>{name ?? 'Value'}</code>}
      />
      {(problem ?? schema.description) && (
        <p className={problem ? styles.error : styles.hint}>{problem ?? schema.description}</p>
      )}
    </div>
  );
}

/** Alternatives: the one that the value fits is shown, and another can be chosen. */
function ChoiceNode(props: NodeProps) {
  const { schema, root, value, name, pointer, required, problems, onChange } = props;
  const id = useId();
  const choices = choicesOf(schema, root) ?? [];
  const at = value === undefined && !required ? -1 : chosenIndex(choices, value);
  const chosen = choices[at];
  return (
    <fieldset className={styles.group}>
      <label className={styles.label} htmlFor={id}>
        {schema.title ?? <code>{name ?? 'Value'}</code>}
        {!required && <span className={styles.optional}> optional</span>}
      </label>
      <Select
        id={id}
        value={at}
        onChange={(event) => {
          const next = choices[Number(event.target.value)];
          onChange(next === undefined ? undefined : initialValue(next, root));
        }}
      >
        {!required && <option value={-1}>Not set</option>}
        {choices.map((choice, index) => (
          <option key={choiceName(choice, index)} value={index}>
            {choiceName(choice, index)}
          </option>
        ))}
      </Select>
      {schema.description && <p className={styles.hint}>{schema.description}</p>}
      {chosen && kindOf(chosen) !== 'const' && kindOf(chosen) !== 'null' && (
        <div className={styles.nested}>
          <Node
            {...props}
            key={at}
            // The alternative's own title stands in the list above.
            schema={{ ...chosen, title: undefined, description: undefined } as Schema}
            name={kindOf(chosen) === 'object' ? undefined : choiceName(chosen, at)}
            required
          />
        </div>
      )}
      {problems[pointer] && <p className={styles.error}>{problems[pointer]}</p>}
    </fieldset>
  );
}
