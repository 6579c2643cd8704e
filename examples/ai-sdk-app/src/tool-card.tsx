import { type DynamicToolUIPart, getToolName, type ToolUIPart } from 'ai';

export type Decide = (approvalId: string, approved: boolean) => void;

type ToolPart = ToolUIPart | DynamicToolUIPart;

/** What a call's state means to a reader. */
const STATES: Record<ToolPart['state'], string> = {
  'input-streaming': 'preparing',
  'input-available': 'running',
  'approval-requested': 'needs your approval',
  'approval-responded': 'answered',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'rejected',
};

/** A call: what it is about, how it stands, and the buttons while it waits for a person. */
export function ToolCard({ part, decide }: { part: ToolPart; decide: Decide }) {
  const { state, input, output, errorText, approval } = part;
  const isAsked = state === 'approval-requested' && approval;
  return (
    <section className="call" data-state={state}>
      <h3>
        <code>{getToolName(part)}</code> <span>{STATES[state]}</span>
      </h3>
      {errorText && <p className="failure">{errorText}</p>}
      <details open={Boolean(isAsked)}>
        <summary>{output === undefined ? 'Input' : 'Input and output'}</summary>
        <Json value={input} />
        {output !== undefined && <Json value={output} />}
      </details>
      {isAsked && (
        <p className="decision">
          <button type="button" className="primary" onClick={() => decide(approval.id, true)}>
            Approve
          </button>
          <button type="button" onClick={() => decide(approval.id, false)}>
            Reject
          </button>
        </p>
      )}
    </section>
  );
}

function Json({ value }: { value: unknown }) {
  return <pre>{JSON.stringify(value, null, 2) ?? '…'}</pre>;
}
