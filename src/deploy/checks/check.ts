/**
 * A check: one thing that must not get worse for the users of a candidate. It measures both releases, and judges what it
 * measured in one of four ends. Another check is one more file here and one more line in all.ts.
 */
import type { Calls, Said, Window } from '../../store/measures.ts';
import { meanOf } from '../evidence.ts';
import type { RolloutSettings } from '../rollout.ts';
import type { Sample } from '../slice.ts';

export type End = 'pass' | 'fail' | 'inconclusive' | 'unmeasured';

export type Finding = {
  /** Name of the check. */
  readonly name: string;
  readonly end: End;
  /** Whether a rollout waits for it while it is neither pass nor fail. */
  readonly needed: boolean;
  readonly reason: string;
};

export type Both<T> = { readonly baseline: T; readonly candidate: T };

/** What can be measured of the two releases of a rollout since its step began. Each is read once, whoever asks. */
export type Sides = {
  readonly settings: RolloutSettings;
  readonly agent: string;
  /** Names of the releases, and the time in which each is looked at. */
  readonly windows: Both<Pick<Window, 'release' | 'since' | 'until'>>;
  /** Of users that should get the candidate. */
  readonly share: number;
  /** Users whose conversations were begun with each, as drawn. */
  units(): Promise<Both<number>>;
  calls(): Promise<Both<Calls>>;
  said(): Promise<Both<Said>>;
  /** Users by the mean of what is computed of each of their conversations' signals of these names; null: it has no value. */
  signals(
    names: readonly string[],
    figureOf: (signals: ReadonlyMap<string, number>) => number | null,
  ): Promise<Both<Sample>>;
  /** Of the candidate's calls that worked. */
  slowerThan(limitMs: number): Promise<{ readonly count: number; readonly of: number }>;
};

export type Check<Measured = unknown> = {
  readonly name: string;
  measure(sides: Sides): Promise<Measured>;
  /** Pure; fails a candidate as good as its baseline with probability ≤ alpha, ever. Several findings: one for each part. */
  judge(measured: Measured, settings: RolloutSettings, alpha: number): readonly Finding[];
};

export const tooFew = (what: string, { baseline, candidate }: Both<number>, least: number): string =>
  `Too few ${what} to tell: baseline ${baseline}, candidate ${candidate}, each needs ${least}.`;

/** Means of users, side by side. */
export const figures = (called: string, { baseline, candidate }: Both<Sample>): string => {
  const shown = (sample: Sample) => meanOf(sample).toFixed(3);
  return `${called}: candidate ${shown(candidate)} of ${candidate.n} users, baseline ${shown(baseline)} of ${baseline.n}`;
};

export function words(end: End, bad: string): string {
  switch (end) {
    case 'pass':
      return `not ${bad}.`;
    case 'fail':
      return `${bad}, and chance does not explain it.`;
    case 'inconclusive':
      return `perhaps ${bad}: not certain yet.`;
    case 'unmeasured':
      return 'not measured.';
    default:
      return end satisfies never;
  }
}
