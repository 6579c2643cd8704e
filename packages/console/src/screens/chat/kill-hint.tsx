import { X, Zap } from 'lucide-react';
import { useState } from 'react';
import { IconButton } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import styles from './kill-hint.module.css';

const KEY = 'toolgate.kill-hint';
/** By its process id, because other processes may have the same name. `make run` keeps its data in `toolgate-data`. */
const COMMAND = 'kill -9 "$(cat toolgate-data/pid)"';

/**
 * Suggests to end the gateway while a call waits, so that a newcomer sees that nothing is lost. Only where the
 * gateway is on the reader's own machine, and until it is dismissed.
 */
export function KillHint() {
  const [isShown, setShown] = useState(isWanted);
  if (!isShown) return null;
  return (
    <aside className={styles.hint} aria-label="Something to try">
      <Zap aria-hidden="true" />
      <div className={styles.words}>
        This call is stored, and so is the answer that you give. Try it: end the gateway, start it again with{' '}
        <code>make run</code>, and go on here.
        <span className={styles.command}>
          <code>{COMMAND}</code>
          <CopyButton text={COMMAND} label="Copy the command" />
        </span>
      </div>
      <IconButton
        size="small"
        label="Do not suggest this again"
        icon={<X />}
        onClick={() => {
          dismiss();
          setShown(false);
        }}
      />
    </aside>
  );
}

function isWanted(): boolean {
  if (!/^(localhost|127\.0\.0\.1|\[::1\])$/.test(globalThis.location.hostname)) return false;
  try {
    return localStorage.getItem(KEY) === null;
  } catch {
    return true;
  }
}

function dismiss(): void {
  try {
    localStorage.setItem(KEY, 'dismissed');
  } catch {
    // Storage may be blocked; then it is dismissed as long as the page is open.
  }
}
