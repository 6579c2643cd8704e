import type { wire } from '@toolgate/client';
import type { ToolCall } from '@toolgate/react';
import { callsOf } from '@toolgate/react';
import { Bot, ChevronRight, Split } from 'lucide-react';
import { type CSSProperties, useMemo, useState } from 'react';
import { CallDetail } from '../../conversation/tool-card.tsx';
import { Person } from '../../data/person.tsx';
import { classNames } from '../../ui/class-names.ts';
import { formatClock, formatCount, formatDuration } from '../../ui/format.ts';
import { useNow } from '../../ui/now.ts';
import { placementWord } from '../../ui/placement.tsx';
import { showControls } from '../../ui/visible-text.ts';
import { callHistory } from './call-history.ts';
import type { RunStory } from './run-events.ts';
import { type TimeScale, timeScale } from './time-scale.ts';
import { type CallLane, type Span, type StepLane, timelineOf } from './timeline.ts';
import styles from './timeline-view.module.css';
import { useStory } from './use-story.ts';

const DEPTH_MAX = 8;
const TICKS = 3;

export interface TimelineViewProps {
  readonly story: RunStory;
  /** The call whose detail is open. */
  readonly chosen: string | undefined;
  readonly onChoose: (callId: string | undefined) => void;
}

/** When the model and the tools of a run worked, and when it waited. */
export function TimelineView({ story, chosen, onChoose }: TimelineViewProps) {
  const now = useNow();
  const timeline = useMemo(() => timelineOf(story.events), [story.events]);
  const scale = useMemo(() => timeScale(timeline, now), [timeline, now]);
  return (
    <div className={styles.timeline}>
      <Legend />
      <Axis scale={scale} />
      <Lanes story={story} scale={scale} chosen={chosen} onChoose={onChoose} depth={0} />
    </div>
  );
}

function Legend() {
  return (
    <div className={styles.legend}>
      <span>
        <i className={styles.model} /> Model
      </span>
      <span>
        <i className={styles.call} data-outcome="output" /> Call
      </span>
      <span>
        <i className={styles.call} data-outcome="error" /> Failed call
      </span>
      <span>
        <i className={styles.wait} /> Waiting
      </span>
    </div>
  );
}

function Axis({ scale }: { readonly scale: TimeScale }) {
  const ticks = Array.from({ length: TICKS }, (_, index) => index / (TICKS - 1));
  return (
    <div className={styles.axis} aria-hidden="true">
      <span />
      <span className={styles.ticks}>
        {ticks.map((place) => (
          <span key={place} className={styles.tick} style={{ left: `${place * 100}%` }}>
            {place === 0 ? '0' : formatDuration(timeAt(scale, place) - scale.from)}
          </span>
        ))}
      </span>
      <span />
    </div>
  );
}

/** The time at a place, found by halving: the scale is monotonic. */
function timeAt(scale: TimeScale, place: number): number {
  let [low, high] = [scale.from, scale.to];
  for (let count = 0; count < 40; count += 1) {
    const middle = (low + high) / 2;
    if (scale.place(middle) < place) low = middle;
    else high = middle;
  }
  return high;
}

interface LanesProps extends TimelineViewProps {
  readonly scale: TimeScale;
  readonly depth: number;
}

function Lanes({ story, scale, chosen, onChoose, depth }: LanesProps) {
  const timeline = useMemo(() => timelineOf(story.events), [story.events]);
  const calls = useMemo(
    () => new Map(callsOf(story.conversation).map((call) => [call.id, call])),
    [story.conversation],
  );
  return (
    <>
      {timeline.steps.map((step) => (
        <div key={step.step}>
          <Step step={step} scale={scale} />
          {step.calls.map((lane) => (
            <Call
              key={lane.id}
              events={story.events}
              lane={lane}
              call={calls.get(lane.id)}
              scale={scale}
              chosen={chosen}
              onChoose={onChoose}
              depth={depth}
            />
          ))}
        </div>
      ))}
    </>
  );
}

function Step({ step, scale }: { readonly step: StepLane; readonly scale: TimeScale }) {
  const tokens = step.usage && step.usage.inputTokens + step.usage.outputTokens;
  return (
    <div className={styles.lane}>
      <span className={styles.label}>
        <Bot aria-hidden="true" />
        <span className={styles.step}>Step {step.step}</span>
        <span className={styles.meta}>
          {tokens !== undefined && `${formatCount(tokens)} tokens`}
          {step.retries > 0 && ` · ${step.retries} ${step.retries === 1 ? 'retry' : 'retries'}`}
        </span>
      </span>
      <Track spans={[step.model]} scale={scale} label={`Model, step ${step.step}`} />
      <span className={styles.time}>{spanTime([step.model], scale)}</span>
    </div>
  );
}

interface CallProps extends Omit<LanesProps, 'story'> {
  readonly events: readonly wire.Event[];
  readonly lane: CallLane;
  readonly call: ToolCall | undefined;
}

function Call({ events, lane, call, scale, chosen, onChoose, depth }: CallProps) {
  const isOpen = chosen === lane.id;
  return (
    <>
      <button
        type="button"
        className={classNames(styles.lane, styles.callLane)}
        aria-expanded={isOpen}
        onClick={() => onChoose(isOpen ? undefined : lane.id)}
      >
        <span className={classNames(styles.label, styles.inset)}>
          {lane.childRunId ? <Split aria-hidden="true" /> : <ChevronRight aria-hidden="true" />}
          <span className={styles.name}>{lane.name}</span>
          <span className={styles.meta}>
            {lane.waitsFor ? `waits for ${lane.waitsFor}` : placementWord(lane.placement)}
          </span>
        </span>
        <Track
          spans={lane.spans}
          scale={scale}
          label={lane.name}
          {...(lane.outcome && { outcome: lane.outcome })}
        />
        <span className={styles.time}>{spanTime(lane.spans, scale)}</span>
      </button>
      {isOpen && call && (
        <div className={styles.detail}>
          <CallDetail call={call} />
          <History events={events} callId={lane.id} />
        </div>
      )}
      {lane.childRunId && depth < DEPTH_MAX && (
        <Child runId={lane.childRunId} scale={scale} chosen={chosen} onChoose={onChoose} depth={depth + 1} />
      )}
    </>
  );
}

/** Who did what with a call, and when. */
function History({ events, callId }: { readonly events: readonly wire.Event[]; readonly callId: string }) {
  const moments = useMemo(() => callHistory(events, callId), [events, callId]);
  return (
    <ol className={styles.history} aria-label="What happened to the call">
      {moments.map(({ seq, time, words, by, note }) => (
        <li key={seq}>
          <time dateTime={time}>{formatClock(time)}</time>
          <span>
            {words}
            {by && (
              <>
                {words.startsWith('Offered') ? ' of ' : ' by '}
                <Person id={by} />
              </>
            )}
            {note && <span className={styles.meta}> {showControls(note)}</span>}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** The lanes of a child run on the time axis of the run at the top; folded at first. */
function Child({ runId, ...rest }: Omit<LanesProps, 'story'> & { readonly runId: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    // Only names are indented, so that bars of child runs stand on the same time axis.
    <div className={styles.child} style={{ '--depth': rest.depth } as CSSProperties}>
      <button
        type="button"
        className={classNames(styles.lane, styles.callLane)}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <span className={styles.label}>
          <ChevronRight aria-hidden="true" />
          <span className={styles.meta}>Child run</span>
        </span>
        <span />
        <span className={styles.time}>{isOpen ? 'Hide' : 'Show'}</span>
      </button>
      {isOpen && <ChildLanes runId={runId} {...rest} />}
    </div>
  );
}

function ChildLanes({ runId, ...rest }: Omit<LanesProps, 'story'> & { readonly runId: string }) {
  return <Lanes story={useStory(runId)} {...rest} />;
}

interface TrackProps {
  readonly spans: readonly Span[];
  readonly scale: TimeScale;
  readonly label: string;
  readonly outcome?: string;
}

function Track({ spans, scale, label, outcome }: TrackProps) {
  return (
    <span className={styles.track}>
      {scale.breaks.map(({ at, width, ms }) => (
        <span
          key={at}
          className={styles.break}
          style={{ left: `${at * 100}%`, width: `${width * 100}%` }}
          title={`${formatDuration(ms)} of waiting, shortened`}
        />
      ))}
      {spans.map((span) => {
        const left = scale.place(span.from);
        const right = scale.place(span.to ?? scale.to);
        return (
          <span
            key={span.from + span.kind}
            className={classNames(styles.bar, styles[span.kind], span.to === undefined && styles.open)}
            data-outcome={outcome}
            style={{ left: `${left * 100}%`, width: `${Math.max(right - left, 0) * 100}%` }}
            title={`${label}: ${span.kind === 'wait' ? 'waited' : 'worked'} ${formatDuration((span.to ?? scale.to) - span.from)} from ${formatClock(new Date(span.from).toISOString())}`}
          />
        );
      })}
      {spans.some(({ to }) => to === undefined) && <span className={styles.now} />}
    </span>
  );
}

function spanTime(spans: readonly Span[], scale: TimeScale): string {
  const [first] = spans;
  const last = spans.at(-1);
  return first && last ? formatDuration((last.to ?? scale.to) - first.from) : '';
}
