import { isSettled, type ToolCall } from '@toolgate/react';

/** The first time at which something that open calls wait for is too late; undefined if nothing has one. */
export function waitsUntil(calls: readonly ToolCall[]): string | undefined {
  const times = calls
    .filter(({ state }) => !isSettled(state))
    .flatMap(({ approval, questions, deadline, pause }) => [
      approval?.state === 'requested' ? approval.expiresAt : undefined,
      ...(questions ?? []).map(({ state, expiresAt }) => (state === 'asked' ? expiresAt : undefined)),
      deadline,
      pause?.until,
    ]);
  return times.filter((time) => time !== undefined).sort((a, b) => Date.parse(a) - Date.parse(b))[0];
}
