import { useMemo, useSyncExternalStore } from 'react';
import { useToolgateContext } from './context.js';
import { callsOf } from './conversation.js';
import { type Connection, ConversationStore, EMPTY_SNAPSHOT } from './conversation-store.js';
import type { Message, Run, ToolCall } from './message.js';

/** One run, live. */
export interface RunView {
  /** Absent until its first event has arrived. */
  readonly run: Run | undefined;
  readonly messages: readonly Message[];
  readonly calls: readonly ToolCall[];
  readonly connection: Connection;
  /** Why the run failed, or why it cannot be read. */
  readonly error: Error | undefined;
  /** Cancels the run and its child runs, also while it waits. */
  readonly cancel: () => Promise<void>;
}

/** Follows one run until it ends. Without a run id, nothing. */
export function useRun(runId: string | undefined): RunView {
  const { client } = useToolgateContext('useRun');
  const store = useMemo(
    () => (runId ? new ConversationStore((after) => client.runs.subscribe(runId, { after })) : NO_RUN),
    [client, runId],
  );
  const snapshot = useSyncExternalStore(store.subscribe, store.snapshot, store.serverSnapshot);
  return useMemo(() => {
    const run = runId ? snapshot.runs[runId] : undefined;
    return {
      run,
      messages: snapshot.messages,
      calls: callsOf(snapshot),
      connection: snapshot.connection,
      error: snapshot.connectionError ?? (run?.error === undefined ? undefined : new Error(run.error)),
      cancel: async () => {
        if (runId) await client.runs.cancel(runId);
      },
    };
  }, [client, runId, snapshot]);
}

const NO_RUN = {
  subscribe: () => () => {},
  snapshot: () => EMPTY_SNAPSHOT,
  serverSnapshot: () => EMPTY_SNAPSHOT,
};
