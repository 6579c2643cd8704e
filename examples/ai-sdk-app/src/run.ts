import type { UIMessage } from 'ai';

/** The run behind an answer, as the gateway's parts `data-run` tell of it. */
export interface Run {
  runId: string;
  status: string;
}

export function runOf(message: UIMessage | undefined): Run | undefined {
  const part = message?.parts.findLast(({ type }) => type === 'data-run');
  return (part as { data: Run } | undefined)?.data;
}

/** Whether the agent works, or waits for a function of the page. */
export function isWorking(run: Run | undefined): boolean {
  return run?.status === 'running' || run?.status === 'waiting_tool';
}
