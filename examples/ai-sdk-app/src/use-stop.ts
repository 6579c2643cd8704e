import { useEffect, useState } from 'react';

interface Stop {
  stop: () => void;
  isStopping: boolean;
  problem?: Error;
}

/**
 * Stops the agent. `stop()` of `useChat` only stops listening to it. Before the answer begins its run is not known yet: it is
 * cancelled as soon as it is.
 */
export function useStop(runId: string | undefined, isBusy: boolean): Stop {
  const [isStopping, setStopping] = useState(false);
  const [problem, setProblem] = useState<Error>();
  useEffect(() => {
    if (!isStopping || !runId) return;
    cancel(runId).catch((error: Error) => {
      setProblem(error);
      setStopping(false);
    });
  }, [isStopping, runId]);
  useEffect(() => {
    if (isBusy) return;
    setStopping(false);
    setProblem(undefined);
  }, [isBusy]);
  const stop = () => {
    setProblem(undefined);
    setStopping(true);
  };
  return { stop, isStopping, ...(problem && { problem }) };
}

async function cancel(runId: string): Promise<void> {
  const response = await fetch(`/api/runs/${runId}/cancel`, { method: 'POST' });
  if (!response.ok) throw new Error(await response.text());
}
