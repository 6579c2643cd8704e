import type { ToolCall } from '@toolgate/react';
import {
  Ban,
  CircleCheck,
  CircleX,
  Clock,
  Hand,
  LoaderCircle,
  MessageCircleQuestionMark,
  MonitorSmartphone,
} from 'lucide-react';
import type { ReactNode } from 'react';
import { Badge, type Tone } from '../ui/badge.tsx';
import { formatDuration, formatTimeOfDay } from '../ui/format.ts';

/** The state of a call as a badge. */
export function CallStateBadge({ call }: { readonly call: ToolCall }) {
  const [tone, icon, word, turning = false] = look(call);
  return (
    <Badge tone={tone} icon={icon} turning={turning}>
      {word}
    </Badge>
  );
}

function look(call: ToolCall): [Tone, ReactNode, string, boolean?] {
  if (call.questions?.some(({ state }) => state === 'asked'))
    return ['amber', <MessageCircleQuestionMark key="icon" />, 'Asks'];
  switch (call.state) {
    case 'input-streaming':
      return ['blue', <LoaderCircle key="icon" />, 'Writing input', true];
    case 'input-available':
      return call.placement === 'client'
        ? ['amber', <MonitorSmartphone key="icon" />, 'Waits for a client']
        : ['blue', <LoaderCircle key="icon" />, 'Starting', true];
    case 'approval-requested':
      return ['amber', <Hand key="icon" />, 'Needs approval'];
    case 'executing':
      return call.pause
        ? ['amber', <Clock key="icon" />, call.pause.signal ? 'Waits for a signal' : 'Waits for a time']
        : ['blue', <LoaderCircle key="icon" />, 'Running', true];
    case 'output-available':
      return ['green', <CircleCheck key="icon" />, 'Done'];
    case 'output-denied':
      return ['neutral', <Ban key="icon" />, 'Rejected'];
    default:
      return ['red', <CircleX key="icon" />, 'Failed'];
  }
}

/** What there is to say of a call beside its state: whom it waits for and until when, or how long it took. */
export function callWords(call: ToolCall, now: number): string {
  if (call.endedAt && call.requestedAt)
    return formatDuration(Date.parse(call.endedAt) - Date.parse(call.startedAt ?? call.requestedAt));
  if (call.state === 'approval-requested' && call.approval)
    return `until ${formatTimeOfDay(call.approval.expiresAt, now)}`;
  if (call.pause) return `until ${formatTimeOfDay(call.pause.until, now)}`;
  if (call.state === 'input-available' && call.deadline)
    return `until ${formatTimeOfDay(call.deadline, now)}`;
  if (call.state === 'executing' && call.startedAt) {
    const where = call.childRunId
      ? 'in a child run'
      : call.claim
        ? `on ${holderWords(call.claim.holder)}`
        : '';
    return [where, formatDuration(Math.max(0, now - Date.parse(call.startedAt)))].filter(Boolean).join(' · ');
  }
  return call.askedBy ? `asked by ${call.askedBy}` : '';
}

function holderWords(holder: string): string {
  return holder.startsWith('page_') ? 'a page' : holder;
}
