import { ArrowUp, Plus, X } from 'lucide-react';
import { Button, IconButton } from '../button.tsx';
import { Node, type NodeProps } from './node.tsx';
import { initialValue, kindOf, resolve, type Schema } from './schema.ts';
import styles from './schema-form.module.css';

/** Items that are drawn; a longer list is edited as JSON. */
const ITEMS_MAX = 200;

/** A list: items can be added, moved and removed. */
export function ArrayNode({ schema, root, value, name, pointer, required, problems, onChange }: NodeProps) {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const isFull = schema.maxItems !== undefined && items.length >= schema.maxItems;
  const change = (next: readonly unknown[]): void =>
    onChange(next.length === 0 && !required ? undefined : next);
  return (
    <fieldset className={styles.group}>
      <legend className={styles.legend}>
        {schema.title ?? <code>{name ?? 'Items'}</code>}
        {!required && <span className={styles.optional}> optional</span>}
        <span className={styles.optional}>{items.length === 1 ? '1 item' : `${items.length} items`}</span>
      </legend>
      {schema.description && <p className={styles.hint}>{schema.description}</p>}
      {problems[pointer] && <p className={styles.error}>{problems[pointer]}</p>}
      <div className={`${styles.members} ${styles.nested}`}>
        {items.slice(0, ITEMS_MAX).map((item, index) => (
          <div key={index} className={styles.row}>
            <Node
              schema={itemSchema(schema, index)}
              root={root}
              {...(isPlain(itemSchema(schema, index), root) ? {} : { name: `${index + 1}` })}
              value={item}
              pointer={`${pointer}/${index}`}
              required
              problems={problems}
              onChange={(next) => change(items.with(index, next ?? null))}
            />
            {index > 0 && (
              <IconButton
                size="small"
                label={`Move item ${index + 1} up`}
                icon={<ArrowUp />}
                onClick={() => change(items.with(index - 1, item).with(index, items[index - 1]))}
              />
            )}
            <IconButton
              size="small"
              label={`Remove item ${index + 1}`}
              icon={<X />}
              onClick={() => change(items.toSpliced(index, 1))}
            />
          </div>
        ))}
        <div>
          <Button
            size="small"
            icon={<Plus />}
            disabled={isFull}
            onClick={() => change([...items, firstValue(itemSchema(schema, items.length), root)])}
          >
            Add an item
          </Button>
        </div>
      </div>
    </fieldset>
  );
}

function itemSchema(schema: Schema, index: number): Schema {
  return schema.prefixItems?.[index] ?? schema.items ?? {};
}

/** Whether an item is a lone control, which needs no number above it. */
function isPlain(schema: Schema, root: Schema): boolean {
  return !['object', 'array', 'choice', 'boolean'].includes(kindOf(resolve(schema, root)));
}

function firstValue(schema: Schema, root: Schema): unknown {
  return initialValue(schema, root) ?? (kindOf(resolve(schema, root)) === 'string' ? '' : null);
}
