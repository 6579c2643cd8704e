import { useEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useTheme } from '../../shell/theme.ts';
import styles from './overview.module.css';
import { stack } from './stack.ts';

/** A series, with the name of the variable that has its colour. */
export interface Series {
  readonly name: string;
  readonly color: string;
}

export interface TimeChartProps {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly values: ReadonlyArray<readonly number[]>;
  readonly format: (value: number) => string;
}

const HEIGHT = 180;
const HALF_HOUR_S = 1800;
const BAR_WIDTH_MAX = 40;

/** Stacked bars over time. The values under the pointer stand in the legend, and all of them in a table. */
export function TimeChart({ title, times, series, values, format }: TimeChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [at, setAt] = useState<number>();
  const theme = useTheme();
  const data = useMemo(() => [times, ...stack(values).reverse()] as uPlot.AlignedData, [times, values]);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    void theme;
    const color = (name: string): string => getComputedStyle(element).getPropertyValue(name);
    const axis = {
      stroke: color('--text-3'),
      font: '11px Inter, sans-serif',
      grid: { stroke: color('--border'), width: 1 },
      ticks: { show: false },
    };
    const bars = uPlot.paths.bars?.({ size: [0.7, BAR_WIDTH_MAX], radius: 0.15 });
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        // Room for half of the last hour's label.
        padding: [8, 28, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: {
          // Half an hour more on both sides, so that the first and the last bar are whole.
          x: { range: (_, min, max) => [min - HALF_HOUR_S, max + HALF_HOUR_S] },
          y: { range: (_, __, max) => [0, Math.max(4, max * 1.1)] },
        },
        axes: [
          { ...axis, grid: { show: false }, space: 64, size: 28, values: (_, splits) => splits.map(hourOf) },
          {
            ...axis,
            size: 44,
            values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? format(value) : '')),
          },
        ],
        series: [
          {},
          // The tallest first: each series covers the lower part of the one before.
          ...series.toReversed().map(({ name, color: variable }) => ({
            label: name,
            fill: color(variable),
            width: 0,
            points: { show: false },
            ...(bars && { paths: bars }),
          })),
        ],
        hooks: { setCursor: [({ cursor }) => setAt(cursor.idx ?? undefined)] },
      },
      latest.current,
      element,
    );
    plot.current = chart;
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
    // The colours are read when the chart is made, so a change of theme makes a new one.
  }, [theme, series, format]);
  useEffect(() => plot.current?.setData(data), [data]);
  const total = (row: readonly number[]): number => row.reduce((sum, value) => sum + value, 0);
  return (
    <figure className={styles.chart}>
      <figcaption>
        <span className={styles.chartTitle}>{title}</span>
        <span className={styles.legend}>
          {at !== undefined && <span>{hourOf(times[at] ?? 0)}</span>}
          {series.map(({ name, color }, index) => (
            <span key={name} className={styles.key}>
              <i data-color={color} aria-hidden="true" />
              {name}{' '}
              <b>{format(at === undefined ? total(values[index] ?? []) : (values[index]?.[at] ?? 0))}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} className={styles.plot} aria-hidden="true" />
      <table className="visually-hidden">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Hour</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time, row) => (
            <tr key={time}>
              <th scope="row">{hourOf(time)}</th>
              {values.map((column, index) => (
                <td key={series[index]?.name}>{format(column[row] ?? 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

function hourOf(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}
