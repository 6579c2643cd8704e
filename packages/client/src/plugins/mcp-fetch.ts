import { isRecord } from '../definition-rules.js';

/** No code of JSON-RPC, so that it is not taken for the answer of a server. */
const BROKEN = -1;

/**
 * Makes the requests of the official packages' HTTP transports, which wait without end for the answer of a call when its
 * stream breaks. A call whose stream cannot be resumed gets an error then; `onBroken` is called for every other stream that
 * breaks.
 */
export class WatchedFetch {
  readonly #onBroken: () => void;
  /** Requests without a response yet. */
  readonly #open = new Set<Promise<Response>>();

  constructor(onBroken: () => void) {
    this.#onBroken = onBroken;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const sent = fetch(input, init);
    this.#open.add(sent);
    const response = await sent.finally(() => this.#open.delete(sent));
    const isStream = response.headers.get('content-type')?.includes('text/event-stream');
    if (!response.ok || !response.body || !isStream) return response;
    const call = callOf(init?.body);
    const body = watchedBody(response.body, (resumable, broken) => {
      if (init?.signal?.aborted) return undefined;
      if (call !== undefined && !resumable) return brokenOff(call);
      if (broken) this.#onBroken();
      return undefined;
    });
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };

  /** Resolves when every request that was sent has a response or has failed. */
  async responded(): Promise<void> {
    await Promise.allSettled(this.#open);
  }
}

/** The body, and at its end what `onEnd` gives. A body that breaks ends in order if there is something. */
function watchedBody(
  body: ReadableStream<Uint8Array>,
  onEnd: (resumable: boolean, broken: boolean) => Uint8Array | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let tail = '\n';
  let resumable = false;
  return new ReadableStream({
    async pull(controller) {
      const end = (broken: boolean, error?: unknown): void => {
        const last = onEnd(resumable, broken);
        if (last) controller.enqueue(last);
        if (broken && !last) controller.error(error);
        else controller.close();
      };
      try {
        const { value, done } = await reader.read();
        if (done) return end(false);
        // An event with an id can be asked for again.
        const text = tail + decoder.decode(value, { stream: true });
        resumable ||= /[\r\n]id:/.test(text);
        tail = text.slice(-'\nid:'.length);
        controller.enqueue(value);
      } catch (error) {
        end(true, error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** The id of the call that a request makes; `undefined` if it makes none. */
function callOf(body: unknown): unknown {
  if (typeof body !== 'string') return undefined;
  const message: unknown = JSON.parse(body);
  return isRecord(message) && message.method === 'tools/call' ? message.id : undefined;
}

/** The last event of a call without an answer. After an answer it is ignored. */
function brokenOff(id: unknown): Uint8Array {
  const error = { code: BROKEN, message: 'the connection broke off' };
  return new TextEncoder().encode(
    `\n\nevent: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, error })}\n\n`,
  );
}
