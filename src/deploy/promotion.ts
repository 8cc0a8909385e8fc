/**
 * The question before everybody gets a candidate: is it shown that users do not fare worse by more than a margin, or that they
 * fare better? A group-sequential test (sequential.ts) with the margin, the users and the number of looks declared beforehand.
 * Users are compared within each step, because a step has its own days and its own shares, and the steps are added up by what
 * they can tell (Mantel and Haenszel's weights). Each look is kept with the rollout, so that no look is taken twice. Pure.
 *
 * What it is not: a reason to roll back. That is the checks' business, which may fail a candidate at any time.
 */
import type { Both } from './checks/check.ts';
import { meanOf, standardError } from './evidence.ts';
import type { RolloutSettings } from './rollout.ts';
import { bounds } from './sequential.ts';
import type { Sample } from './slice.ts';

export type Look = {
  readonly at: number; // ms since epoch
  /** Users so far, as many as an even split would need to tell as much. */
  readonly users: number;
  /** Of the declared number, at most 1. */
  readonly share: number;
  readonly difference: number;
  readonly z: number;
  /** What z had to reach. */
  readonly bound: number;
  readonly shown: boolean;
};

/** How the question stands. */
export type Standing = {
  readonly kind: 'unasked' | 'shown' | 'due' | 'early' | 'not shown';
  readonly reason: string;
  /** Where one is due. */
  readonly look: Look | null;
};

type Promotion = RolloutSettings['promotion'];
type Asked = Pick<RolloutSettings, 'outcome' | 'promotion'>;

/** `steps`: the outcome of users with each release while each step lasted. */
export function promotionStanding(
  steps: readonly Both<Sample>[],
  looks: readonly Look[],
  { outcome, promotion }: Asked,
  now: number,
): Standing {
  const standing = (kind: Standing['kind'], reason: string, look: Look | null = null): Standing => ({
    ...{ kind, reason, look },
  });
  if (outcome === null || promotion.rule === 'checks') return standing('unasked', 'The checks alone decide.');
  const last = looks.at(-1);
  if (last?.shown) return standing('shown', told(last, looks.length, promotion));
  if (last !== undefined && last.share >= 1)
    return standing('not shown', `${told(last, looks.length, promotion)} All looks are taken.`);
  const { users, difference, error } = compared(steps);
  const share = Math.min(1, users / promotion.users);
  const next = (Math.floor((last?.share ?? 0) * promotion.looks + 1e-9) + 1) / promotion.looks;
  if (share < next - 1e-9)
    return standing(
      'early',
      `Too few users with ${outcome} to ask whether the candidate is ${wanted(promotion)}: ${Math.floor(users)} of ${Math.ceil(next * promotion.users)} users’ worth.`,
    );
  const margin = promotion.rule === 'superiority' ? 0 : promotion.margin;
  const z = (difference + margin) / error;
  const bound = bounds([...looks.map((look) => look.share), share], promotion.alpha).at(-1)!;
  const look = { at: now, users: Math.floor(users), share, difference, z, bound, shown: z >= bound };
  return standing('due', told(look, looks.length + 1, promotion), look);
}

const wanted = ({ rule, margin }: Promotion): string =>
  rule === 'superiority' ? 'better' : `worse by less than ${margin}`;

const told = ({ users, difference, z, bound, shown }: Look, n: number, promotion: Promotion): string =>
  `Look ${n}, ${users} users’ worth: the candidate’s mean is ${difference >= 0 ? '+' : ''}${difference.toFixed(3)}; that it is ${wanted(promotion)} is ${shown ? '' : 'not '}shown (z ${z.toFixed(2)}, ${bound.toFixed(2)} needed).`;

/** The difference of means within steps, its standard error, and the users it stands on. */
export function compared(steps: readonly Both<Sample>[]) {
  let weights = 0;
  let sum = 0;
  let variance = 0;
  for (const { baseline, candidate } of steps) {
    if (baseline.n === 0 || candidate.n === 0) continue;
    const weight = (baseline.n * candidate.n) / (baseline.n + candidate.n);
    weights += weight;
    sum += weight * (meanOf(candidate) - meanOf(baseline));
    variance += (weight * standardError(baseline, candidate)) ** 2;
  }
  const users = 4 * weights;
  if (weights === 0) return { users, difference: 0, error: Number.POSITIVE_INFINITY };
  // Where nothing ever varied: as if one user of all had differed by one.
  return { users, difference: sum / weights, error: Math.max(Math.sqrt(variance) / weights, 2 / users) };
}
