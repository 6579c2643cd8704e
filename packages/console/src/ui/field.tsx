import { ChevronDown, Search } from 'lucide-react';
import {
  type ComponentProps,
  cloneElement,
  type InputHTMLAttributes,
  isValidElement,
  type ReactElement,
  type ReactNode,
  type Ref,
  useId,
} from 'react';
import { classNames } from './class-names.ts';
import styles from './field.module.css';

export interface FieldProps {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** One control; it is given its id and what describes it. */
  readonly children: ReactElement<{
    id?: string | undefined;
    'aria-describedby'?: string | undefined;
    'aria-invalid'?: boolean | undefined;
  }>;
}

/** A labelled control with its hint and its error. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const notes = useId();
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      {isValidElement(children) &&
        cloneElement(children, {
          id,
          'aria-describedby': hint || error ? notes : undefined,
          'aria-invalid': error ? true : undefined,
        })}
      <div id={notes}>
        {error ? <p className={styles.error}>{error}</p> : hint && <p className={styles.hint}>{hint}</p>}
      </div>
    </div>
  );
}

export type InputProps = InputHTMLAttributes<HTMLInputElement> & {
  readonly mono?: boolean;
  readonly ref?: Ref<HTMLInputElement>;
};

export function Input({ mono = false, className, ...rest }: InputProps) {
  return <input {...rest} className={classNames(styles.input, mono && styles.mono, className)} />;
}

export function TextArea({
  mono = false,
  className,
  ...rest
}: ComponentProps<'textarea'> & { mono?: boolean }) {
  return <textarea {...rest} className={classNames(styles.input, mono && styles.mono, className)} />;
}

/** A native select: it works with every keyboard and phone. */
export function Select({ className, ...rest }: ComponentProps<'select'>) {
  return (
    <span className={classNames(styles.select, className)}>
      <select {...rest} className={styles.input} />
      <ChevronDown aria-hidden="true" />
    </span>
  );
}

export function SearchInput({ label, className, ...rest }: InputProps & { readonly label: string }) {
  return (
    <span className={classNames(styles.search, className)}>
      <Search aria-hidden="true" />
      <Input type="search" placeholder={label} aria-label={label} {...rest} />
    </span>
  );
}

export function Checkbox({ label, ...rest }: InputProps & { readonly label: ReactNode }) {
  return (
    <label className={styles.check}>
      <input type="checkbox" {...rest} />
      {label}
    </label>
  );
}
