/** Shares and short series, drawn. Each has its number beside it or in its label: the drawing is for the glance. */
import type { Tone } from './figure.tsx';

type BarProps = { readonly share: number; readonly label: string; readonly tone?: Tone };

export function Bar({ share, label, tone = 'plain' }: BarProps) {
  const width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return (
    <div className={`bar ${tone}`} role="img" aria-label={label} title={label}>
      <div style={{ width }} />
    </div>
  );
}

type SparklineProps = { readonly values: readonly number[]; readonly label: string; readonly width?: number };

export function Sparkline({ values, label, width = 120 }: SparklineProps) {
  const height = 24;
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const at = (value: number, n: number): string => {
    const x = values.length < 2 ? width / 2 : 2 + (n / (values.length - 1)) * (width - 4);
    return `${x.toFixed(1)},${(height - 3 - ((value - low) / range) * (height - 6)).toFixed(1)}`;
  };
  const last = values.at(-1);
  return (
    <svg className="sparkline" width={width} height={height} role="img" aria-label={label}>
      <title>{label}</title>
      <polyline points={values.map(at).join(' ')} />
      {last !== undefined && (
        <circle cx={at(last, values.length - 1).split(',')[0]} cy={at(last, values.length - 1).split(',')[1]} r="2" />
      )}
    </svg>
  );
}

type HistogramProps = {
  readonly bins: readonly number[];
  /** The ends of the scale; without them it has no caption. */
  readonly from?: string;
  readonly to?: string;
  readonly label: string;
};

/** Counts in equal bins. */
export function Histogram({ bins, from, to, label }: HistogramProps) {
  const most = Math.max(1, ...bins);
  return (
    <figure className="histogram">
      <svg viewBox={`0 0 ${bins.length * 10} 40`} preserveAspectRatio="none" role="img" aria-label={label}>
        <title>{label}</title>
        {bins.map((n, at) => (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a bin is its place
            key={at}
            x={at * 10 + 0.5}
            width="9"
            y={40 - (n / most) * 39}
            height={(n / most) * 39 + (n > 0 ? 1 : 0)}
          />
        ))}
      </svg>
      {from !== undefined && (
        <figcaption>
          <span>{from}</span>
          <span>{to}</span>
        </figcaption>
      )}
    </figure>
  );
}

type SharesProps = {
  readonly of: readonly { readonly name: string; readonly value: number; readonly colour: string }[];
  readonly said: (value: number) => string;
};

/** Parts of a whole, side by side, each with its name and number below. */
export function Shares({ of, said }: SharesProps) {
  const all = of.reduce((sum, { value }) => sum + value, 0) || 1;
  return (
    <figure className="shares">
      <div className="stacked" role="img" aria-label={of.map(({ name, value }) => `${name} ${said(value)}`).join(', ')}>
        {of.map(({ name, value, colour }) => (
          <div key={name} className={colour} style={{ width: `${(100 * value) / all}%` }} />
        ))}
      </div>
      <figcaption>
        {of.map(({ name, value, colour }) => (
          <span key={name} className={`key ${colour}`}>
            {name} <span className="note">{said(value)}</span>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
