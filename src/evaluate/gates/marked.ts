/**
 * What gates share that look for a mark in an answer, such as a wording: how often each model's attempts show it, and whether
 * the candidate's do so more often than `limit` allows and than chance explains.
 */
import { fewestCases, type Gate, type GatedAttempt, type GatedCase, lookAt, percent, unmeasured } from './gate.ts';
import { atEqualSuccess, isRise, rise } from './paired.ts';

export type Mark = {
  readonly name: string;
  /** null: it does not apply to this attempt. */
  readonly shows: (attempt: GatedAttempt) => boolean | null;
  /** Points by which the share may rise. */
  readonly limit: number;
  /** What the marked ones are, after "x% of the attempts"; e.g. "refuse and solve nothing". */
  readonly says: string;
  /** What it means when there are too many. */
  readonly means: string;
  /** Compare only where the two came out alike: for marks that may also come with doing the work. */
  readonly atEqualSuccess?: boolean;
};

export function markGate(all: readonly GatedCase[], mark: Mark): Gate {
  const { name, shows, limit, says, means } = mark;
  const cases = mark.atEqualSuccess ? atEqualSuccess(all) : all;
  const found = rise(cases, (attempt) => {
    const shown = shows(attempt);
    return shown === null ? null : Number(shown);
  });
  if (found === null || found.n < fewestCases)
    return unmeasured(name, limit, `Fewer than ${fewestCases} cases can be compared.`);
  const { baseline, candidate } = found;
  const fails = candidate - baseline > limit && isRise(found);
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline, candidate, limit },
    reason: `${percent(candidate)} of the attempts ${says}, ${percent(baseline)} of the baseline’s${fails ? `: ${means}` : ''}.`,
    look: fails ? lookAt(cases, (attempt) => shows(attempt) === true) : [],
  };
}

/** Whether any of its texts has this wording. */
export const says = ({ answer }: GatedAttempt, wording: RegExp): boolean =>
  answer.said.some((text) => wording.test(text));
