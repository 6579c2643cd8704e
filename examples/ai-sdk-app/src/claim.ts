/** Seconds for which a call is this browser's. A function that may take longer claims its call again in the meantime. */
const LEASE_SECONDS = 30;
const PAUSE_MS = 1000;

/** The name of this browser, the same in all its tabs and after a reload. `Turn` decides between its tabs. */
export const holder: string = keptName();

/**
 * Whether this browser may execute a call. While another one holds it, for which it may be reserved, this waits: that one may
 * be gone. False once the call has its result, or `isWanted` says that this tab has left.
 */
export async function claim(toolCallId: string, isWanted: () => boolean): Promise<boolean> {
  for (;;) {
    const response = await fetch(`/api/calls/${toolCallId}/claim`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ holder, leaseSeconds: LEASE_SECONDS }),
    }).catch(() => undefined);
    // Nobody can be asked: the function runs, and the gateway takes the first result.
    if (!response || response.ok || response.status >= 500) return true;
    const { code } = await response.json();
    if (code !== 'HELD') return false;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (!isWanted()) return false;
  }
}

function keptName(): string {
  const known = localStorage.getItem('holder');
  if (known) return known;
  const made = `browser-${crypto.randomUUID()}`;
  localStorage.setItem('holder', made);
  return made;
}
