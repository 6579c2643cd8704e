import { freshId } from './fresh-id.ts';

/** Seconds for which a call is this browser's. A function that may take longer claims its call again in the meantime. */
const LEASE_SECONDS = 30;
/** Seconds between two claims of a call, unless the gateway's `Retry-After` asks for more. */
const PAUSE_SECONDS = 1;
const PAUSE_SECONDS_MAX = 30;

/** The name of this browser, the same in all its tabs and after a reload. `Turn` decides between its tabs. */
export const holder: string = nameOfBrowser();

/** Calls that had ended when they were claimed. */
const ended = new Set<string>();

/**
 * Whether this browser may execute a call. While another one holds it, for which it may be reserved, this waits: that one may
 * be gone. It also waits while the gateway asks for fewer requests. False once the call has its result, or `isWanted` says that
 * this tab has left.
 */
export async function claim(toolCallId: string, isWanted: () => boolean): Promise<boolean> {
  for (;;) {
    const response = await fetch(`/api/calls/${toolCallId}/claim`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ holder, leaseSeconds: LEASE_SECONDS }),
    }).catch(() => undefined);
    if (!response || response.ok) return true;
    const { status, headers } = response;
    // Only the gateway's own answers have a code, not those of a proxy that lacks this route.
    const { code } = (await response.json().catch(() => undefined)) ?? {};
    const isHeld = status === 409 && code === 'HELD';
    if (status === 410 || (code && !isHeld && (status === 404 || status === 409))) {
      // The stream asks for the call once more: it has not ended, whatever the answer said.
      if (ended.has(toolCallId)) return true;
      ended.add(toolCallId);
      return false;
    }
    // Whose call it is cannot be known: the function runs, and the gateway takes the first result.
    if (!isHeld && status !== 408 && status !== 429) return true;
    const seconds = Math.max(Number(headers.get('retry-after')) || 0, PAUSE_SECONDS);
    await new Promise((resolve) => setTimeout(resolve, Math.min(seconds, PAUSE_SECONDS_MAX) * 1000));
    if (!isWanted()) return false;
  }
}

function nameOfBrowser(): string {
  const fresh = `browser-${freshId()}`;
  // Without locks `Turn` cannot decide between the tabs: each has a name of its own, and the gateway decides.
  if (!navigator.locks) return fresh;
  try {
    const name = localStorage.getItem('holder') ?? fresh;
    localStorage.setItem('holder', name);
    return name;
  } catch {
    // Storage may be blocked.
    return fresh;
  }
}
