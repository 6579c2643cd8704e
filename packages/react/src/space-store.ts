import {
  GoneError,
  pause,
  type ToolgateClient,
  ToolgateError,
  UnavailableError,
  type wire,
} from '@toolgate/client';
import { ConversationStore } from './conversation-store.js';
import { ToolExecutor } from './tool-executor.js';

/** Runs whose places are read to come near the end of the log. */
const RUNS_MAX = 20;
/** Events in a page, the most that the gateway gives. */
const PAGE_EVENTS = 500;
/** Pages that are read from there on. */
const PAGES_MAX = 20;
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
   * `seq` of the last event that the space has now: the stream does not show where its past ends. Waits until the gateway
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

  /** The newest runs tell of places near the end of the log; from there on it takes a page, mostly an empty one. */
  async #readTail(cursor: number, signal: AbortSignal): Promise<number> {
    const { runs } = await this.client.spaces.runs(this.spaceId, { limit: RUNS_MAX }, { signal });
    let tail = Math.max(cursor, ...runs.map(({ seq }) => seq));
    let after: number | null | undefined = tail;
    for (let pages = 0; after != null && pages < PAGES_MAX; pages += 1) {
      const page: wire.EventPage = await this.#page(after, signal);
      tail = page.events.at(-1)?.seq ?? tail;
      after = page.nextCursor;
    }
    return tail;
  }

  /** A page of events; where some after this place were deleted, the place from which on all are kept is the next. */
  async #page(after: number, signal: AbortSignal): Promise<wire.EventPage> {
    try {
      return await this.client.spaces.events(this.spaceId, { after, limit: PAGE_EVENTS }, { signal });
    } catch (error) {
      const { deletedUpTo } = ((error instanceof GoneError && error.problem?.snapshot) || {}) as {
        deletedUpTo?: number;
      };
      if (deletedUpTo === undefined || deletedUpTo <= after) throw error;
      return { events: [], nextCursor: deletedUpTo };
    }
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
