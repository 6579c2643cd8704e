import type { wire } from '@toolgate/client';
import {
  Ban,
  CircleCheck,
  CircleDashed,
  CircleX,
  Clock,
  Hand,
  LoaderCircle,
  MonitorSmartphone,
} from 'lucide-react';
import type { ReactNode } from 'react';
import { Badge, type Tone } from './badge.tsx';

interface Look {
  readonly word: string;
  readonly tone: Tone;
  readonly icon: ReactNode;
  readonly turning?: boolean;
}

const LOOKS: Readonly<Record<wire.Status, Look>> = {
  queued: { word: 'Queued', tone: 'neutral', icon: <CircleDashed /> },
  running: { word: 'Running', tone: 'blue', icon: <LoaderCircle />, turning: true },
  waiting_tool: { word: 'Waits for a client', tone: 'amber', icon: <MonitorSmartphone /> },
  waiting_approval: { word: 'Waits for a person', tone: 'amber', icon: <Hand /> },
  waiting_time: { word: 'Waits for a time', tone: 'amber', icon: <Clock /> },
  completed: { word: 'Completed', tone: 'green', icon: <CircleCheck /> },
  failed: { word: 'Failed', tone: 'red', icon: <CircleX /> },
  cancelled: { word: 'Cancelled', tone: 'neutral', icon: <Ban /> },
};

/** All statuses of runs, in the order of a run's life. */
export const STATUSES = Object.keys(LOOKS) as wire.Status[];

/** A status in words. */
export function statusWords(status: wire.Status): string {
  return LOOKS[status]?.word ?? status;
}

/** Whether a run with this status has ended. */
export function isEnded(status: wire.Status): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** The status of a run. A status from a newer gateway is shown as its word. */
export function StatusBadge({ status }: { readonly status: wire.Status }) {
  const look = LOOKS[status] ?? { word: status, tone: 'neutral', icon: <CircleDashed /> };
  return (
    <Badge tone={look.tone} icon={look.icon} turning={look.turning ?? false}>
      {look.word}
    </Badge>
  );
}
