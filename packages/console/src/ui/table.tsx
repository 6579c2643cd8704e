import type { ReactNode } from 'react';
import styles from './table.module.css';

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  /** Numbers and buttons stand on the right. */
  readonly end?: boolean;
  /** Hides the title for people who see the column's content. */
  readonly quiet?: boolean;
}

export interface TableProps<T> {
  readonly label: string;
  readonly columns: ReadonlyArray<Column<T>>;
  readonly rows: readonly T[];
  readonly rowKey: (row: T) => string;
}

/** A short table. On a narrow screen each row is a block with the columns' titles beside its values. */
export function Table<T>({ label, columns, rows, rowKey }: TableProps<T>) {
  return (
    <table className={styles.table} aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ title, end, quiet }) => (
            <th key={title} scope="col" data-end={end}>
              {quiet ? <span className="visually-hidden">{title}</span> : title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={rowKey(row)}>
            {columns.map(({ title, cell, end, quiet }) => (
              <td key={title} data-end={end} data-title={quiet ? undefined : title}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
