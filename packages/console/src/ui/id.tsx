import { Check, Copy } from 'lucide-react';
import { useState } from 'react';
import { copyText } from './copy.ts';
import { shortId } from './format.ts';
import styles from './id.module.css';

/** An id, shortened; a click copies all of it. */
export function Id({ id, whole = false }: { readonly id: string; readonly whole?: boolean }) {
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      className={styles.id}
      title={`Copy ${id}`}
      onBlur={() => setCopied(false)}
      onClick={(event) => {
        event.stopPropagation();
        event.preventDefault();
        void copyText(id).then(() => setCopied(true));
      }}
    >
      {whole ? id : shortId(id)}
      {copied ? <Check /> : <Copy />}
    </button>
  );
}
