import { Fragment, type ReactNode } from 'react';
import styles from './facts.module.css';

export interface FactsProps {
  /** Names and values; a value that is missing leaves its row out. */
  readonly rows: ReadonlyArray<readonly [string, ReactNode]>;
}

/** Names and values of one thing. */
export function Facts({ rows }: FactsProps) {
  return (
    <dl className={styles.facts}>
      {rows.map(([name, value]) =>
        value === undefined || value === null || value === '' ? null : (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ),
      )}
    </dl>
  );
}
