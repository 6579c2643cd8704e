import { useCallback, useMemo, useState } from 'react';
import { useToolgateContext } from './context.js';

/** The result of a client call: a value or an error. `callId` is accepted as `toolCallId`. */
export type ToolResult = ({ readonly toolCallId: string } | { readonly callId: string }) &
  ({ readonly result: unknown } | { readonly error: string }) & { readonly runId?: string };

export interface ToolResultSubmission {
  /**
   * Submits a result to a call of the space. Resolves when it is stored; submitting the same result again is
   * safe.
   */
  readonly submit: (spaceId: string, result: ToolResult) => Promise<void>;
  /** Submits a result to a call of the run. */
  readonly submitToRun: (runId: string, result: ToolResult) => Promise<void>;
  readonly isSubmitting: boolean;
  /** Why the last result was rejected. */
  readonly error: Error | undefined;
}

/** Submits results of client tools by hand. For tools with a handler, `useAutoToolHandler` does it. */
export function useToolResult(): ToolResultSubmission {
  const { client } = useToolgateContext('useToolResult');
  const [underWay, setUnderWay] = useState(0);
  const [error, setError] = useState<Error>();
  const track = useCallback(async (submission: Promise<unknown>) => {
    setUnderWay((count) => count + 1);
    setError(undefined);
    try {
      await submission;
    } catch (reason) {
      setError(reason instanceof Error ? reason : new Error(String(reason)));
      throw reason;
    } finally {
      setUnderWay((count) => count - 1);
    }
  }, []);
  return useMemo(
    () => ({
      submit: (spaceId, result) => track(client.tools.submitResult(spaceId, wire(result))),
      submitToRun: (runId, result) => track(client.tools.submitRunResult(runId, wire(result))),
      isSubmitting: underWay > 0,
      error,
    }),
    [client, track, underWay, error],
  );
}

function wire(given: ToolResult) {
  const toolCallId = 'toolCallId' in given ? given.toolCallId : given.callId;
  return 'error' in given ? { toolCallId, error: given.error } : { toolCallId, result: given.result };
}
