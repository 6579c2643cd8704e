import { Component, type ReactNode, useMemo } from 'react';
import { ApprovalView } from './approval-view.js';
import type { ChatStore } from './chat-store.js';
import { useToolgateClient } from './context.js';
import { CheckIcon, CrossIcon, ToolIcon } from './icons.js';
import type { ToolCall } from './message.js';
import type { ToolComponentProps, ToolComponents } from './tool-component.js';

export interface ToolCallViewProps {
  readonly call: ToolCall;
  readonly components: ToolComponents;
  readonly decide: ChatStore['decide'];
}

/** One call: its approval, then its own component, or the default card. */
export function ToolCallView({ call, components, decide }: ToolCallViewProps): ReactNode {
  if (call.state === 'approval-requested' && call.approval?.state === 'requested') {
    return <ApprovalView key={call.approval.id} approval={call.approval} decide={decide} />;
  }
  const own = Object.hasOwn(components, call.name) ? components[call.name] : undefined;
  if (!own || call.state === 'output-denied') return <ToolCard call={call} />;
  return (
    <div className="tg-own" data-tool={call.name} data-state={call.state}>
      <Fallback fallback={<ToolCard call={call} />}>
        <Own of={own} call={call} />
      </Fallback>
    </div>
  );
}

function Own({ of: Own, call }: { of: NonNullable<ToolComponents[string]>; call: ToolCall }) {
  const client = useToolgateClient();
  const { id, spaceId } = call;
  const actions = useMemo(
    (): Pick<ToolComponentProps, 'submit' | 'fail' | 'report'> => ({
      submit: async (result) => {
        await client.tools.submitResult(spaceId, {
          toolCallId: id,
          result: result === undefined ? null : result,
        });
      },
      fail: async (message) => {
        await client.tools.submitResult(spaceId, { toolCallId: id, error: message });
      },
      report: async (progress) => {
        await client.tools.progress(id, progress);
      },
    }),
    [client, id, spaceId],
  );
  const isOpen =
    call.placement === 'client' &&
    call.deadline !== undefined &&
    (call.state === 'input-available' || call.state === 'executing');
  return (
    <Own
      call={call}
      input={call.input}
      output={call.output}
      state={call.state}
      progress={call.progress}
      isOpen={isOpen}
      {...actions}
    />
  );
}

/** The default card of a tool without a component. */
function ToolCard({ call }: { call: ToolCall }) {
  const details = [
    { title: 'Input', value: call.input },
    { title: 'Output', value: call.output },
  ].filter(({ value }) => value !== undefined);
  const head = (
    <>
      <span className="tg-tool-icon">
        <StateIcon call={call} />
      </span>
      <span className="tg-tool-name">{call.name}</span>
      <span className="tg-tool-state">{stateWords(call)}</span>
    </>
  );
  const attributes = { className: 'tg-tool', 'data-tool': call.name, 'data-state': call.state };
  if (details.length === 0) {
    return (
      <div {...attributes}>
        <div className="tg-tool-head">{head}</div>
        <Progress call={call} />
      </div>
    );
  }
  return (
    <div {...attributes}>
      <details>
        <summary className="tg-tool-head">{head}</summary>
        {details.map(({ title, value }) => (
          <div key={title} className="tg-json">
            <span>{title}</span>
            <pre>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>
          </div>
        ))}
      </details>
      <Progress call={call} />
    </div>
  );
}

function StateIcon({ call }: { call: ToolCall }) {
  switch (call.state) {
    case 'output-available':
      return <CheckIcon />;
    case 'output-error':
    case 'output-denied':
      return <CrossIcon />;
    case 'executing':
    case 'input-streaming':
      return <span className="tg-spinner" />;
    default:
      return <ToolIcon />;
  }
}

function stateWords(call: ToolCall): string {
  switch (call.state) {
    case 'input-streaming':
      return 'Preparing…';
    case 'input-available':
      return call.placement === 'client' ? 'Waiting for a client' : 'Starting…';
    case 'approval-requested':
      return 'Waiting for approval';
    case 'executing':
      return 'Running…';
    case 'output-available':
      return 'Done';
    case 'output-denied':
      return call.error ? `Declined: ${call.error.message}` : 'Declined';
    case 'output-error':
      return `Failed: ${call.error?.message ?? 'no reason given'}`;
  }
}

function Progress({ call }: { call: ToolCall }) {
  if (call.state !== 'executing' || call.progress === undefined) return null;
  const { progress } = call;
  if (typeof progress === 'number') return <progress className="tg-progress" value={progress} max={1} />;
  return <p className="tg-progress">{typeof progress === 'string' ? progress : JSON.stringify(progress)}</p>;
}

/** Replaces a component that throws, and nothing else, by the fallback. */
class Fallback extends Component<{ fallback: ReactNode; children: ReactNode }, { hasFailed: boolean }> {
  override state: { hasFailed: boolean } = { hasFailed: false };

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}
