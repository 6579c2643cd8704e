import type { ToolgateClient } from '@toolgate/client';
import { ConversationStore } from './conversation-store.js';
import { ToolExecutor } from './tool-executor.js';

/** The conversation of one space, and the executor of the calls that are for this page. */
export class SpaceStore extends ConversationStore {
  readonly client: ToolgateClient;
  readonly spaceId: string;
  readonly executor: ToolExecutor;

  constructor(client: ToolgateClient, spaceId: string) {
    super((after) => client.spaces.subscribe(spaceId, { after }));
    this.client = client;
    this.spaceId = spaceId;
    this.executor = new ToolExecutor(this);
  }
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
