import styles from './segments.module.css';

export interface SegmentsProps<T extends string> {
  readonly label: string;
  readonly options: ReadonlyArray<{ readonly id: T; readonly label: string }>;
  readonly chosen: T;
  readonly onChoose: (id: T) => void;
  readonly disabled?: boolean;
}

/** A choice of a few, all of them visible. */
export function Segments<T extends string>({ label, options, chosen, onChoose, disabled }: SegmentsProps<T>) {
  return (
    <fieldset className={styles.segments} disabled={disabled}>
      <legend className="visually-hidden">{label}</legend>
      {options.map(({ id, label: words }) => (
        <button key={id} type="button" aria-pressed={id === chosen} onClick={() => onChoose(id)}>
          {words}
        </button>
      ))}
    </fieldset>
  );
}
