/** A number with its name, its unit and, where it was measured on a sample, its interval. */
import type { ReactNode } from 'react';

type FigureProps = {
  readonly label: string;
  readonly value: ReactNode;
  readonly unit?: string | undefined;
  /** Both ends as they are to be read, 95% unless said otherwise. */
  readonly interval?: readonly [string, string] | null;
  readonly note?: ReactNode;
  readonly tone?: Tone;
};

export type Tone = 'good' | 'bad' | 'warn' | 'plain';

export function Figure({ label, value, unit, interval, note, tone = 'plain' }: FigureProps) {
  return (
    <div className={`figure ${tone}`}>
      <span className="label">{label}</span>
      <span className="value">
        {value}
        {unit && <span className="unit"> {unit}</span>}
        {interval && (
          <span className="interval" title="95% interval">
            {' '}
            {interval[0]} to {interval[1]}
          </span>
        )}
      </span>
      {note && <span className="note">{note}</span>}
    </div>
  );
}

export const Figures = ({ children }: { readonly children: ReactNode }) => <div className="figures">{children}</div>;

/** A word with a colour; the word says it all. */
export const Tag = ({ children, tone = 'plain' }: { readonly children: ReactNode; readonly tone?: Tone }) => (
  <span className={`tag ${tone}`}>{children}</span>
);
