import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button, IconButton } from './button.tsx';
import { copyText } from './copy.ts';

const SHOWN_MS = 1500;

export interface CopyButtonProps {
  /** The text, or a function that makes it when it is wanted. */
  readonly text: string | (() => string);
  readonly label?: string;
  /** Shows the label beside the icon. */
  readonly wide?: boolean;
}

/** Copies a text and says so for a moment. */
export function CopyButton({ text, label = 'Copy', wide = false }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (): Promise<void> => {
    await copyText(typeof text === 'function' ? text() : text);
    setCopied(true);
  };
  const icon = copied ? <Check /> : <Copy />;
  if (wide)
    return (
      <Button size="small" icon={icon} onClick={copy}>
        {copied ? 'Copied' : label}
      </Button>
    );
  return <IconButton size="small" label={copied ? 'Copied' : label} icon={icon} onClick={copy} />;
}
