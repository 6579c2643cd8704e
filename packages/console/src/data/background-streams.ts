/**
 * How long a conversation in the background keeps its stream: tools of the page go on while somebody looks at
 * another tab.
 */
export const CONVERSATION_MS_MAX = 5 * 60_000;

type Fetch = typeof globalThis.fetch;
type Visibility = Pick<Document, 'hidden' | 'addEventListener' | 'removeEventListener'>;

/**
 * A `fetch` whose event streams end when the page goes to the background, and begin when it is looked at. Browsers
 * open six connections to one host, for all tabs together: without this, the seventh tab of the console would load
 * nothing. A stream that was ended is resumed by the client after the last event that it has read.
 */
export function pauseInBackground(send: Fetch, page: Visibility = document): Fetch {
  // By the caller's signal, which stays the same when its stream is opened again.
  const open = new Map<AbortSignal, { readonly path: string; readonly stop: AbortController }>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = (which: (path: string) => boolean): void => {
    for (const [caller, { path, stop }] of open) {
      if (!which(path)) continue;
      open.delete(caller);
      stop.abort();
    }
  };
  page.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (!page.hidden) return;
    end((path) => !isConversation(path));
    timer = setTimeout(() => end(() => true), CONVERSATION_MS_MAX);
  });
  return async (input, init) => {
    const caller = init?.signal;
    const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream';
    if (!isStream || !caller || (init.method ?? 'GET') !== 'GET') return send(input, init);
    await visible(page, caller);
    const stop = new AbortController();
    if (!open.has(caller)) caller.addEventListener('abort', () => open.delete(caller), { once: true });
    open.set(caller, { path: new URL(String(input)).pathname, stop });
    return send(input, { ...init, signal: AbortSignal.any([caller, stop.signal]) });
  };
}

function isConversation(path: string): boolean {
  return path.startsWith('/v1/spaces/');
}

/** Resolves as soon as somebody looks at the page; rejects if the caller gives up before. */
function visible(page: Visibility, signal: AbortSignal): Promise<void> {
  if (!page.hidden) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const done = (): void => {
      page.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', giveUp);
    };
    const look = (): void => {
      if (page.hidden) return;
      done();
      resolve();
    };
    const giveUp = (): void => {
      done();
      reject(signal.reason);
    };
    page.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
  });
}
