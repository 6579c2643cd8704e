import type { Timeline } from './timeline.ts';

/** Maps times to places between 0 and 1, with long stretches of mere waiting shortened. */
export interface TimeScale {
  readonly place: (time: number) => number;
  /** Stretches that are drawn shorter than they were. */
  readonly breaks: ReadonlyArray<{ readonly at: number; readonly width: number; readonly ms: number }>;
  readonly from: number;
  readonly to: number;
}

/** A pause longer than this share of all work is shortened to it. */
const PAUSE_SHARE_MAX = 0.25;
const PAUSE_MS_MIN = 1_000;

interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly weight: number;
  readonly isBreak: boolean;
}

/** The scale of a run: linear while something works, shortened where everything only waits. */
export function timeScale(timeline: Timeline, now: number): TimeScale {
  const from = timeline.from;
  const to = Math.max(timeline.to ?? now, from + 1);
  const busy = union(
    timeline.steps.flatMap(({ model, calls }) =>
      [model, ...calls.flatMap(({ spans }) => spans)]
        .filter(({ kind }) => kind !== 'wait')
        .map((span) => [span.from, Math.min(span.to ?? to, to)] as const),
    ),
  );
  const work = Math.max(
    busy.reduce((sum, [start, end]) => sum + (end - start), 0),
    1,
  );
  const pauseMax = Math.max(work * PAUSE_SHARE_MAX, PAUSE_MS_MIN);
  const stretches: Stretch[] = [];
  let at = from;
  const add = (end: number, isBusy: boolean): void => {
    if (end <= at) return;
    const isBreak = !isBusy && end - at > pauseMax * 1.5;
    stretches.push({ from: at, to: end, weight: isBreak ? pauseMax : end - at, isBreak });
    at = end;
  };
  for (const [start, end] of busy) {
    add(start, false);
    add(end, true);
  }
  add(to, false);
  return scaleOf(stretches, from, to);
}

function scaleOf(stretches: readonly Stretch[], from: number, to: number): TimeScale {
  const total = stretches.reduce((sum, { weight }) => sum + weight, 0) || 1;
  const starts: number[] = [];
  let sum = 0;
  for (const { weight } of stretches) {
    starts.push(sum / total);
    sum += weight;
  }
  const place = (time: number): number => {
    if (time <= from) return 0;
    if (time >= to) return 1;
    const index = Math.max(
      stretches.findLastIndex((stretch) => stretch.from <= time),
      0,
    );
    const stretch = stretches[index];
    if (!stretch) return 0;
    const share = (time - stretch.from) / (stretch.to - stretch.from);
    return (starts[index] ?? 0) + (share * stretch.weight) / total;
  };
  const breaks = stretches.flatMap((stretch, index) =>
    stretch.isBreak
      ? [{ at: starts[index] ?? 0, width: stretch.weight / total, ms: stretch.to - stretch.from }]
      : [],
  );
  return { place, breaks, from, to };
}

function union(spans: ReadonlyArray<readonly [number, number]>): Array<[number, number]> {
  const joined: Array<[number, number]> = [];
  for (const [from, to] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}
