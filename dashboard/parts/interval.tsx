/** A difference with its 95% interval, drawn on a scale that its neighbours share: one that does not touch the line in the middle stands. */
type IntervalProps = {
  readonly value: number;
  readonly interval: readonly [number, number];
  /** The end of the scale, on both sides of 0. */
  readonly most: number;
  readonly label: string;
};

const width = 200;
const height = 18;

export function Interval({ value, interval: [low, high], most, label }: IntervalProps) {
  const at = (n: number): number => width / 2 + (Math.max(-1, Math.min(1, n / (most || 1))) * (width - 8)) / 2;
  const tone = low > 0 ? 'good' : high < 0 ? 'bad' : 'plain';
  return (
    <svg className={`interval-line ${tone}`} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <title>{label}</title>
      <line className="zero" x1={width / 2} x2={width / 2} y1="0" y2={height} />
      <line className="range" x1={at(low)} x2={at(high)} y1={height / 2} y2={height / 2} />
      <circle cx={at(value)} cy={height / 2} r="4" />
    </svg>
  );
}

/** The end of a scale that holds all of them. */
export const scaleOf = (intervals: readonly (readonly [number, number])[]): number =>
  Math.max(0.01, ...intervals.flatMap(([low, high]) => [Math.abs(low), Math.abs(high)]));
