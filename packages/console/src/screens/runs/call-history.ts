import type { wire } from '@toolgate/client';

/** One thing that happened to a call, for people. */
export interface CallMoment {
  readonly seq: number;
  readonly time: string;
  readonly words: string;
  /** The entity that did it. */
  readonly by?: string;
  /** What it said with it. */
  readonly note?: string;
}

/** What happened to a call, oldest first: who was asked, who decided, which client had it, and how it ended. */
export function callHistory(events: readonly wire.Event[], callId: string): CallMoment[] {
  const moments: CallMoment[] = [];
  for (const event of events) {
    if (!('toolCallId' in event) || event.toolCallId !== callId) continue;
    const found = momentOf(event);
    if (found) moments.push({ seq: event.seq, time: event.time, ...found });
  }
  return moments;
}

function momentOf(event: wire.Event): Omit<CallMoment, 'seq' | 'time'> | undefined {
  switch (event.type) {
    case 'tool-input-available':
      if (event.consent)
        return {
          words: 'Runs by a remembered approval',
          ...who(event.consent.by),
          note: event.consent.consentId,
        };
      return {
        words: event.deadline ? 'Offered to clients' : 'Asked for by the model',
        ...who(event.offeredTo),
      };
    case 'tool-approval-request':
      return { words: 'Approval asked for' };
    case 'tool-approval-response':
      return {
        words: event.expired
          ? 'Not decided in time'
          : !event.approved
            ? 'Rejected'
            : event.input !== undefined
              ? 'Approved with a changed input'
              : event.remembered
                ? 'Approved from now on'
                : 'Approved',
        ...who(event.by),
        ...(event.reason && { note: event.reason }),
      };
    case 'tool-question':
      return { words: 'Question asked' };
    case 'tool-question-response':
      return { words: 'Question answered' };
    case 'tool-executing':
      if (event.pause) return { words: 'Waits for a time or a signal' };
      if (event.claim)
        return { words: 'Claimed', ...who(event.claim.by ?? undefined), note: event.claim.holder };
      return { words: event.child ? 'Child run started' : 'Started' };
    case 'tool-released':
      return { words: 'Released by its client' };
    case 'tool-output-available':
      return { words: 'Output' };
    case 'tool-output-error':
      return { words: 'Failed' };
    case 'tool-output-denied':
      return { words: 'Not run' };
    default:
      return undefined;
  }
}

function who(entity: string | undefined): { by?: string } {
  return entity === undefined ? {} : { by: entity };
}
