import styles from './shell.module.css';

/** The gate. */
export function Logo() {
  return (
    <svg className={styles.logo} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path d="M8 23V14a8 8 0 0 1 16 0v9" fill="none" stroke="#fff" strokeWidth="3" strokeLinecap="round" />
      <circle cx="16" cy="18" r="2.6" fill="#fff" />
    </svg>
  );
}
