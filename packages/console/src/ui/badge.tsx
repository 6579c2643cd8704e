import type { ReactNode } from 'react';
import styles from './badge.module.css';
import { classNames } from './class-names.ts';

export type Tone = 'neutral' | 'green' | 'amber' | 'red' | 'blue' | 'violet' | 'accent';

export interface BadgeProps {
  readonly tone?: Tone;
  readonly icon?: ReactNode;
  /** Turns the icon, for work under way. */
  readonly turning?: boolean;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A short fact with a colour; the word carries the meaning. */
export function Badge({ tone = 'neutral', icon, turning = false, title, children }: BadgeProps) {
  return (
    <span
      className={classNames(styles.badge, tone !== 'neutral' && styles[tone], turning && styles.turning)}
      title={title}
    >
      {icon}
      {children}
    </span>
  );
}
