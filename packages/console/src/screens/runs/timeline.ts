import type { wire } from '@toolgate/client';

/** A stretch of time, in milliseconds since the epoch; without an end it goes on. */
export interface Span {
  readonly from: number;
  readonly to?: number;
  readonly kind: 'model' | 'call' | 'wait';
}

/** A call on the timeline. */
export interface CallLane {
  readonly id: string;
  readonly name: string;
  readonly placement: wire.Placement;
  readonly spans: readonly Span[];
  /** How it ended; absent while it is open. */
  readonly outcome?: 'output' | 'error' | 'denied';
  readonly childRunId?: string;
  /** Whom or what it waits for, while it waits. */
  readonly waitsFor?: string;
}

/** A step on the timeline: one reply of the model and its calls. */
export interface StepLane {
  readonly step: number;
  readonly model: Span;
  readonly retries: number;
  readonly usage?: wire.Usage;
  readonly reason?: string;
  readonly calls: readonly CallLane[];
}

export interface Timeline {
  readonly from: number;
  /** The end of the run; absent while it is under way. */
  readonly to?: number;
  readonly steps: readonly StepLane[];
}

interface OpenCall {
  lane: CallLane;
  spans: Span[];
}

/** Reads a run's stored events as lanes: one per step and one per call, with waiting told apart from work. */
export function timelineOf(events: readonly wire.Event[]): Timeline {
  const steps: Array<{ -readonly [K in keyof StepLane]: StepLane[K] }> = [];
  const calls = new Map<string, OpenCall>();
  let to: number | undefined;
  for (const event of events) {
    const at = Date.parse(event.time);
    switch (event.type) {
      case 'step-start':
        steps.push({ step: event.step, model: { from: at, kind: 'model' }, retries: 0, calls: [] });
        break;
      case 'step-retry': {
        const step = steps.at(-1);
        if (step) step.retries += 1;
        break;
      }
      case 'step-finish': {
        const step = steps.at(-1);
        if (!step) break;
        step.model = { ...step.model, to: at };
        step.usage = event.usage;
        step.reason = event.reason;
        break;
      }
      case 'run-finish':
        to = at;
        break;
      default:
        if ('toolCallId' in event) takeCall(calls, event, at, () => steps.at(-1));
    }
  }
  const end = to;
  return {
    from: events[0] ? Date.parse(events[0].time) : 0,
    ...(end !== undefined && { to: end }),
    steps: steps.map((step) => ({
      ...step,
      model: step.model.to === undefined && end !== undefined ? { ...step.model, to: end } : step.model,
      calls: step.calls.map(({ id }) => closed(calls.get(id) as OpenCall, end)),
    })),
  };
}

type ToolEvent = Extract<wire.Event, { toolCallId: string }>;

function takeCall(
  calls: Map<string, OpenCall>,
  event: ToolEvent,
  at: number,
  step: () => { calls: readonly CallLane[] } | undefined,
): void {
  let call = calls.get(event.toolCallId);
  if (!call) {
    const { toolCallId: id, toolName: name, placement } = event;
    call = { lane: { id, name, placement, spans: [] }, spans: [] };
    calls.set(id, call);
    const at = step();
    if (at) at.calls = [...at.calls, call.lane];
  }
  switch (event.type) {
    case 'tool-input-available':
      begin(call, at, event.deadline ? 'wait' : 'call', event.deadline ? 'a client' : undefined);
      break;
    case 'tool-approval-request':
      begin(call, at, 'wait', 'an approval');
      break;
    case 'tool-approval-response':
      if (event.approved)
        begin(call, at, event.deadline ? 'wait' : 'call', event.deadline ? 'a client' : undefined);
      break;
    case 'tool-question':
      begin(call, at, 'wait', 'an answer');
      break;
    case 'tool-question-response':
      begin(call, at, 'call', undefined);
      break;
    case 'tool-executing':
      begin(call, at, event.pause ? 'wait' : 'call', event.pause ? 'a time or a signal' : undefined);
      if (event.child) call.lane = { ...call.lane, childRunId: event.child };
      break;
    case 'tool-released':
      begin(call, at, 'wait', 'a client');
      break;
    case 'tool-output-available':
      finish(call, at, 'output');
      break;
    case 'tool-output-error':
      finish(call, at, 'error');
      break;
    case 'tool-output-denied':
      finish(call, at, 'denied');
      break;
    default:
  }
}

function begin(call: OpenCall, at: number, kind: Span['kind'], waitsFor: string | undefined): void {
  endLast(call, at);
  call.spans.push({ from: at, kind });
  const { waitsFor: _, ...lane } = call.lane;
  call.lane = waitsFor === undefined ? lane : { ...lane, waitsFor };
}

function finish(call: OpenCall, at: number, outcome: NonNullable<CallLane['outcome']>): void {
  endLast(call, at);
  const { waitsFor: _, ...lane } = call.lane;
  call.lane = { ...lane, outcome };
}

function endLast(call: OpenCall, at: number): void {
  const last = call.spans.at(-1);
  if (last && last.to === undefined) call.spans[call.spans.length - 1] = { ...last, to: at };
}

function closed({ lane, spans }: OpenCall, end: number | undefined): CallLane {
  return {
    ...lane,
    spans: spans.map((span) => (span.to === undefined && end !== undefined ? { ...span, to: end } : span)),
  };
}
