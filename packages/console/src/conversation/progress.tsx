import { showControls } from '../ui/visible-text.ts';
import styles from './tool-card.module.css';

const TEXT_MAX = 160;

/** How far a call is: a bar for what looks like a share, and the words that came with it. */
export function Progress({ value }: { readonly value: unknown }) {
  const { share, words } = read(value);
  return (
    <div className={styles.progress}>
      {share !== undefined && <progress max={1} value={share} aria-label="Progress" />}
      <span>{showControls(words)}</span>
    </div>
  );
}

/** Reads the forms that tools use: a number up to 1 or 100, `{progress, total, message}`, or a text. */
export function read(value: unknown): { share?: number; words: string } {
  if (typeof value === 'number') {
    const share = value > 1 ? value / 100 : value;
    return { share: Math.min(1, Math.max(0, share)), words: `${Math.round(share * 100)} %` };
  }
  if (typeof value === 'string') return { words: value.slice(0, TEXT_MAX) };
  if (typeof value !== 'object' || value === null) return { words: '' };
  const { progress, total, message } = value as { progress?: unknown; total?: unknown; message?: unknown };
  const words = typeof message === 'string' ? message.slice(0, TEXT_MAX) : '';
  if (typeof progress === 'number' && typeof total === 'number' && total > 0)
    return { share: Math.min(1, Math.max(0, progress / total)), words: words || `${progress} of ${total}` };
  if (typeof progress === 'number') return { ...read(progress), ...(words && { words }) };
  return { words: words || JSON.stringify(value).slice(0, TEXT_MAX) };
}
