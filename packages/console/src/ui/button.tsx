import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react';
import { Link } from 'wouter';
import styles from './button.module.css';
import { classNames } from './class-names.ts';

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly variant?: 'default' | 'primary' | 'danger' | 'ghost';
  readonly size?: 'medium' | 'small';
  /** Shows a spinner and takes no clicks. */
  readonly busy?: boolean;
  readonly icon?: ReactNode;
  readonly ref?: Ref<HTMLButtonElement>;
}

/** A button with a text. */
export function Button({
  variant = 'default',
  size = 'medium',
  busy = false,
  icon,
  children,
  className,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={busy || rest.disabled}
      aria-busy={busy || undefined}
      className={classNames(
        styles.button,
        variant !== 'default' && styles[variant],
        size === 'small' && styles.small,
        className,
      )}
    >
      {busy ? <span className={styles.spinner} /> : icon}
      {children}
    </button>
  );
}

/** A button that is only an icon; `label` is its name and its tooltip. */
export function IconButton({ label, className, ...rest }: ButtonProps & { readonly label: string }) {
  return (
    <Button
      variant="ghost"
      {...rest}
      aria-label={label}
      title={label}
      className={classNames(styles.icon, className)}
    />
  );
}

/** A link that looks like a button. */
export function LinkButton({
  href,
  variant = 'default',
  size = 'medium',
  icon,
  children,
}: Pick<ButtonProps, 'variant' | 'size' | 'icon' | 'children'> & { readonly href: string }) {
  return (
    <Link
      href={href}
      className={classNames(
        styles.button,
        variant !== 'default' && styles[variant],
        size === 'small' && styles.small,
      )}
    >
      {icon}
      {children}
    </Link>
  );
}

/** A spinner beside a text; silent for screen readers. */
export function Spinner() {
  return <span className={styles.spinner} aria-hidden="true" />;
}
