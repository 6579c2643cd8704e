import type { Overview } from '@toolgate/client';
import { CircleCheck, CircleX, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { Badge, type Tone } from '../../ui/badge.tsx';
import styles from './overview.module.css';

/** Whether store, bus and sandbox workers do their work. */
export function Health({ health }: { readonly health: Overview['health'] }) {
  const { store, bus, sandboxMissing, version } = health;
  return (
    <ul className={styles.health}>
      <Part name="Store" {...(store === 'ok' ? WELL : { ...ILL, word: store })} />
      <Part name="Bus" {...WELL} word={bus === 'ok' ? WELL.word : bus} />
      <Part name="Sandbox workers" {...sandboxLook(sandboxMissing)} />
      <li>
        <span>Version</span>
        <code>{version}</code>
      </li>
    </ul>
  );
}

interface Look {
  readonly word: string;
  readonly tone: Tone;
  readonly icon: ReactNode;
}

const WELL: Look = { word: 'Works', tone: 'green', icon: <CircleCheck /> };
const ILL: Look = { word: 'Unavailable', tone: 'red', icon: <CircleX /> };

function sandboxLook(missing: readonly string[]): Look {
  if (missing.length === 0) return WELL;
  if (missing.includes('worker')) return { ...ILL, word: 'No worker can be started' };
  return { word: `Lacks ${missing.join(', ')}`, tone: 'amber', icon: <TriangleAlert /> };
}

function Part({ name, word, tone, icon }: Look & { readonly name: string }) {
  return (
    <li>
      <span>{name}</span>
      <Badge tone={tone} icon={icon}>
        {word}
      </Badge>
    </li>
  );
}
