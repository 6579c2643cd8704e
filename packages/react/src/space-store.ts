import { pause, type ToolgateClient, ToolgateError, UnavailableError } from '@toolgate/client';
import { ConversationStore } from './conversation-store.js';
import { ToolExecutor } from './tool-executor.js';

/** Runs whose places are read to come near the end of the log. */
const RUNS_MAX = 20;
/** Events that are read from there on. */
const EVENTS_MAX = 10_000;
/** Pause before the end of the log is asked for again. */
const RETRY_MILLISECONDS = 2_000;

/** The conversation of one space, and the executor of the calls that are for this page. */
export class SpaceStore extends ConversationStore {
  readonly client: ToolgateClient;
  readonly spaceId: string;
  readonly executor: ToolExecutor;
  /** Whether this page has made the space, which then had no events before. */
  isMadeHere = false;

  constructor(client: ToolgateClient, spaceId: string) {
    super((after) => client.spaces.subscribe(spaceId, { after }));
    this.client = client;
    this.spaceId = spaceId;
    this.executor = new ToolExecutor(this);
  }

  /**
   * `seq` of the last event of the space that this user sees now: the stream does not show where its past ends. Waits until the gateway
   * is there; rejects with an error that a retry does not fix.
   */
  async tail(signal: AbortSignal): Promise<number> {
    for (;;) {
      const { cursor, connection } = this.snapshot();
      // Whatever happens while the gateway is asked would be past already, such as the first call of a new chat.
      if (this.isMadeHere && (cursor === 0 || connection === 'live')) return cursor;
      try {
        return await this.#readTail(cursor, signal);
      } catch (error) {
        if (signal.aborted || !isPassing(error)) throw error;
        await pause(RETRY_MILLISECONDS, signal);
      }
    }
  }

  /**
   * The newest runs tell of places near the end of the log; from there on it takes a page. A run's place may be that of an event
   * which this user does not see: the stream never comes so far, and its past ends at an earlier one.
   */
  async #readTail(cursor: number, signal: AbortSignal): Promise<number> {
    const { runs } = await this.client.spaces.runs(this.spaceId, { limit: RUNS_MAX }, { signal });
    const places = runs.map(({ seq }) => seq).filter((seq) => seq > cursor);
    for (const place of places.sort((one, other) => other - one)) {
      const tail = await this.#lastAfter(place - 1, signal);
      if (tail !== undefined) return tail;
    }
    return (await this.#lastAfter(cursor, signal, places[0])) ?? cursor;
  }

  /** Place of the last event after a cursor; `end`, or that of the last one that was read, if there are too many. */
  async #lastAfter(after: number, signal: AbortSignal, end?: number): Promise<number | undefined> {
    let last: number | undefined;
    let count = 0;
    for await (const { seq } of this.client.spaces.stored(this.spaceId, { after }, { signal })) {
      last = seq;
      count += 1;
      if (count >= EVENTS_MAX) return end ?? last;
    }
    return last;
  }
}

/** Whether the stream goes on after such an error too: the gateway is away or overloaded. */
function isPassing(error: unknown): boolean {
  // What is not the client's own comes from the page's `token` function, which may be cut off from its server as well.
  return error instanceof UnavailableError || !(error instanceof ToolgateError) || error.retryable;
}

const stores = new WeakMap<ToolgateClient, Map<string, WeakRef<SpaceStore>>>();

/** The store of a space, one per client, so that all hooks share one connection. */
export function spaceStore(client: ToolgateClient, spaceId: string): SpaceStore {
  const known = stores.get(client) ?? new Map<string, WeakRef<SpaceStore>>();
  stores.set(client, known);
  const found = known.get(spaceId)?.deref();
  if (found) return found;
  const made = new SpaceStore(client, spaceId);
  known.set(spaceId, new WeakRef(made));
  return made;
}
