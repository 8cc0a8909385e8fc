/** Verdicts and differences as they are shown. */
import type { Tone } from './parts/figure.tsx';
import { points } from './words.ts';

export const toneOf = (verdict: string): Tone =>
  verdict === 'pass' ? 'good' : verdict === 'fail' ? 'bad' : verdict === 'inconclusive' ? 'warn' : 'plain';

type Difference = { readonly difference: number; readonly interval: readonly [number, number] };

export const said = ({ difference, interval: [low, high] }: Difference): string =>
  `${points(difference)} points, 95% interval ${points(low)} to ${points(high)}`;

/** Of a run. */
export const statusTone = (status: string): Tone =>
  status === 'finished' ? 'good' : status === 'failed' ? 'bad' : status === 'running' ? 'plain' : 'warn';
