import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { Button, IconButton } from '../button.tsx';
import { classNames } from '../class-names.ts';
import { Input } from '../field.tsx';
import { pointerTo } from '../json-tree.ts';
import { Node, type NodeProps } from './node.tsx';
import { initialValue, kindOf, resolve, type Schema } from './schema.ts';
import styles from './schema-form.module.css';

/** An object: its known members, and others where the schema permits them. */
export function ObjectNode(props: NodeProps) {
  const { schema, root, value, name, pointer, required, problems, onChange } = props;
  const isSet = typeof value === 'object' && value !== null && !Array.isArray(value);
  const members = (isSet ? value : {}) as Readonly<Record<string, unknown>>;
  const known = Object.entries(schema.properties ?? {});
  const others = Object.keys(members).filter((member) => !Object.hasOwn(schema.properties ?? {}, member));
  const set = (member: string, next: unknown): void => {
    const { [member]: _, ...rest } = members;
    onChange(next === undefined ? rest : { ...members, [member]: next });
  };
  const body = (
    <div className={classNames(styles.members, name !== undefined && styles.nested)}>
      {known.map(([member, memberSchema]) => (
        <Node
          key={member}
          schema={memberSchema}
          root={root}
          name={member}
          value={members[member]}
          pointer={pointerTo(pointer, member)}
          required={schema.required?.includes(member) ?? false}
          problems={problems}
          onChange={(next) => set(member, next)}
        />
      ))}
      {others.map((member) => (
        <div key={member} className={styles.row}>
          <Node
            schema={otherSchema(schema, members[member])}
            root={root}
            name={member}
            value={members[member]}
            pointer={pointerTo(pointer, member)}
            required
            problems={problems}
            onChange={(next) => set(member, next)}
          />
          <IconButton
            size="small"
            label={`Remove ${member}`}
            icon={<X />}
            onClick={() => set(member, undefined)}
          />
        </div>
      ))}
      {canAdd(schema) && <AddMember taken={Object.keys(members)} add={(member) => set(member, '')} />}
      {known.length === 0 && others.length === 0 && !canAdd(schema) && (
        <p className={styles.hint}>There is nothing to fill in.</p>
      )}
    </div>
  );
  if (name === undefined) return body;
  const isOff = !isSet && !required;
  return (
    <fieldset className={styles.group}>
      <legend className={styles.legend}>
        {schema.title ?? <code>{name}</code>}
        {!required && <span className={styles.optional}> optional</span>}
        {!required && (
          <Button
            size="small"
            variant="ghost"
            onClick={() => onChange(isOff ? (initialValue(schema, root) ?? {}) : undefined)}
          >
            {isOff ? 'Add' : 'Remove'}
          </Button>
        )}
      </legend>
      {schema.description && <p className={styles.hint}>{schema.description}</p>}
      {problems[pointer] && <p className={styles.error}>{problems[pointer]}</p>}
      {!isOff && body}
    </fieldset>
  );
}

function AddMember({
  taken,
  add,
}: {
  readonly taken: readonly string[];
  readonly add: (name: string) => void;
}) {
  const [name, setName] = useState('');
  const isTaken = taken.includes(name);
  return (
    <div className={styles.row}>
      <Input
        mono
        aria-label="Name of another member"
        placeholder="another member"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button
        icon={<Plus />}
        disabled={name === '' || isTaken}
        onClick={() => {
          add(name);
          setName('');
        }}
      >
        Add
      </Button>
    </div>
  );
}

/** Members that the schema does not list may be added where it says so, or lists none at all. */
function canAdd(schema: Schema): boolean {
  if (typeof schema.additionalProperties === 'object' || schema.additionalProperties === true) return true;
  return schema.additionalProperties === undefined && Object.keys(schema.properties ?? {}).length === 0;
}

function otherSchema(schema: Schema, value: unknown): Schema {
  if (typeof schema.additionalProperties === 'object') {
    const found = resolve(schema.additionalProperties, schema);
    if (kindOf(found) !== 'json') return found;
  }
  return typeof value === 'string' ? { type: 'string' } : {};
}
