import type { Status } from './wire.js';

const FINAL: ReadonlySet<Status> = new Set(['completed', 'failed', 'cancelled']);

/** Whether a run of this status has ended. */
export function isFinal(status: Status): boolean {
  return FINAL.has(status);
}
