import type { ToolComponentProps } from '@toolgate/react';

interface ChartInput {
  title: string;
  values: number[];
  labels?: string[];
}

const WIDTH = 480;
const HEIGHT = 200;
const GAP = 0.35;

/** Shows a call of `showChart` as bars. */
export function Chart({ input, state }: ToolComponentProps<ChartInput>) {
  if (!input) return <p className="chart-pending">Drawing a chart…</p>;
  const { title, values, labels = [] } = input;
  const most = Math.max(...values, 0) || 1;
  const slot = WIDTH / values.length;
  const bars = values.map((value, index) => ({
    value,
    label: labels[index] ?? `${index + 1}`,
    x: slot * (index + GAP / 2),
    height: (Math.max(value, 0) / most) * HEIGHT,
  }));
  return (
    <figure className="chart" data-state={state}>
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 -24 ${WIDTH} ${HEIGHT + 52}`} role="img" aria-label={describe(title, bars)}>
        <line x1={0} y1={HEIGHT} x2={WIDTH} y2={HEIGHT} />
        {bars.map(({ value, label, x, height }) => (
          <g key={label} textAnchor="middle">
            <rect x={x} y={HEIGHT - height} width={slot * (1 - GAP)} height={height} rx={5} />
            <text x={x + (slot * (1 - GAP)) / 2} y={HEIGHT - height - 8}>
              {value}
            </text>
            <text className="chart-label" x={x + (slot * (1 - GAP)) / 2} y={HEIGHT + 22}>
              {label}
            </text>
          </g>
        ))}
      </svg>
    </figure>
  );
}

function describe(title: string, bars: { label: string; value: number }[]): string {
  return `${title}: ${bars.map(({ label, value }) => `${label} ${value}`).join(', ')}`;
}
