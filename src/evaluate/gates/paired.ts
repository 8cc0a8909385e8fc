/**
 * A measure of attempts, compared case by case: the mean of each model, and how likely a rise of the candidate's is by chance
 * (one-sided paired t over cases; attempts at one case are not independent, so the case is the unit). `atEqualSuccess` keeps
 * apart what solved the case and what did not, since a model that solves more may rightly talk and act otherwise.
 */
import { pairedT } from '../compare.ts';
import type { GatedAttempt, GatedCase } from './gate.ts';

export type Rise = {
  /** Cases compared. */
  readonly n: number;
  readonly baseline: number;
  readonly candidate: number;
  /** One-sided: of the candidate being above the baseline. */
  readonly p: number;
};

/** By chance one gate in a hundred honest evaluations may rise; the limits, not this, say what is too much. */
export const riseAlpha = 0.01;

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** null: no case could be compared. `measure` gives null where it does not apply. */
export function rise(cases: readonly GatedCase[], measure: (attempt: GatedAttempt) => number | null): Rise | null {
  const of = (attempts: readonly GatedAttempt[]) => attempts.map(measure).filter((value) => value !== null);
  const pairs = cases.flatMap(({ baseline, candidate }) => {
    const [before, after] = [of(baseline), of(candidate)];
    return before.length === 0 || after.length === 0 ? [] : [{ before: mean(before), after: mean(after) }];
  });
  if (pairs.length === 0) return null;
  return {
    n: pairs.length,
    baseline: mean(pairs.map(({ before }) => before)),
    candidate: mean(pairs.map(({ after }) => after)),
    p: pairedT(pairs.map(({ before, after }) => after - before)).above,
  };
}

/**
 * The attempts of cases that both models solved, where there are enough of these; else of cases where the two came out
 * alike. What a model does when it fails is otherwise in many ways that are nobody's trick.
 */
export function atEqualSuccess(cases: readonly GatedCase[], enough = 10): GatedCase[] {
  const only = (solved: boolean) =>
    cases.flatMap((one) => {
      const keep = (attempts: readonly GatedAttempt[]) => attempts.filter((played) => played.solved === solved);
      const [baseline, candidate] = [keep(one.baseline), keep(one.candidate)];
      return baseline.length === 0 || candidate.length === 0 ? [] : [{ ...one, baseline, candidate }];
    });
  const solved = only(true);
  return solved.length >= enough ? solved : [...solved, ...only(false)];
}

/** Whether a rise is one that chance does not explain. */
export const isRise = ({ p, candidate, baseline }: Rise): boolean => candidate > baseline && p < riseAlpha;
