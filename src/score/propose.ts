/**
 * A proposal for a reward's weights: fitted to labels or to a business outcome, told on conversations that the fit has not seen, beside
 * what the weights of today do on the same. Some parts keep their share, and the others divide the rest: penalties, a part that
 * reads the very thing that is to be predicted (it is left out of all figures), and one that was measured too rarely to be fitted.
 * Pure.
 */
import type { Judged } from '../store/judged.ts';
import { fitWeights, foldWeights, type Sample, standings } from './fit-weights.ts';
import { auc, spearman } from './ranks.ts';
import { bootstrap, groupsOf } from './resample.ts';
import { type RewardSpec, weigh } from './weighted.ts';

export type Figure = { readonly value: number | null; readonly low: number | null; readonly high: number | null };

export type Proposal = {
  readonly samples: number;
  readonly groups: number;
  readonly parts: readonly {
    readonly name: string;
    readonly current: number;
    readonly proposed: number | null;
    /** It keeps its weight, whatever the others do. */
    readonly kept: boolean;
  }[];
  /** Of those that keep their weight, the ones that read the target itself. */
  readonly leftOut: readonly string[];
  readonly spearman: Compared;
  /** Where the target is one of two values. */
  readonly auc: Compared | null;
  /** `better`: the interval of the difference lies above 0. `none`: no part rises with the target. */
  readonly verdict: 'better' | 'not shown' | 'worse' | 'none' | 'too few';
  /** Conversations that would cross the threshold of curation. */
  readonly gained: number;
  readonly lost: number;
};
type Compared = { readonly current: Figure; readonly proposed: Figure; readonly difference: Figure };

/** Fewer say nothing about weights. */
export const fewestSamples = 20;
const fewestGroups = 5;

/** Measured in fewer than this many of the samples, a part cannot be fitted. */
const fewestMeasured = 10;

type Row = { readonly group: string; readonly target: number; readonly current: number; readonly proposed: number };

/** The total of a conversation if these were the weights, by name; a part without one does not count. */
function totalUnder({ parts: scored }: Judged, parts: RewardSpec['parts'], weights: ReadonlyMap<string, number>) {
  const entries = parts.flatMap(({ name, penalty }) => {
    const weight = weights.get(name) ?? 0;
    return weight > 0 ? [{ value: scored[name]?.value ?? null, weight, penalty }] : [];
  });
  return weigh(entries).value;
}

export function proposeWeights(
  judged: readonly Judged[],
  { parts }: Pick<RewardSpec, 'parts'>,
  { isTarget, minScore, seed = 1 }: { isTarget: (scorerName: string) => boolean; minScore: number; seed?: number },
): Proposal {
  const whole = parts.reduce((sum, { weight }) => sum + weight, 0);
  const share = new Map(parts.map(({ name, weight }) => [name, weight / whole]));
  const leftOut = parts.filter(({ scorer }) => isTarget(scorer.name)).map(({ name }) => name);
  const isMeasured = ({ parts: scored }: Judged, name: string) => (scored[name]?.value ?? null) !== null;
  const candidates = parts
    .filter(({ name, penalty }) => !penalty && !leftOut.includes(name))
    .map(({ name }) => name)
    .filter((name) => judged.filter((one) => isMeasured(one, name)).length >= fewestMeasured);
  const free = candidates.reduce((sum, name) => sum + share.get(name)!, 0);

  const usable = judged.filter((one) => candidates.some((name) => isMeasured(one, name)));
  const samples = usable.map(
    ({ group, target, parts: scored }): Sample => ({
      ...{ group, target, values: candidates.map((name) => scored[name]?.value ?? null) },
    }),
  );
  const groups = groupsOf(samples, ({ group }) => group).length;
  const few = samples.length < fewestSamples || groups < fewestGroups;
  const fitted = few ? null : fitWeights(samples);
  const told = parts.filter(({ name }) => !leftOut.includes(name));
  const proposedShares = (weights: readonly number[]) =>
    new Map([...share, ...candidates.map((name, j): [string, number] => [name, weights[j]! * free])]);
  const folds = fitted === null ? [] : foldWeights(samples, { seed });
  const stands =
    fitted === null
      ? usable.map(() => null)
      : standings(usable, folds, (one, weights) => totalUnder(one, told, proposedShares(weights)));
  const rows = usable.flatMap((one, i): Row[] => {
    const current = totalUnder(one, told, share);
    const proposed = stands[i]!;
    return current === null || proposed === null ? [] : [{ group: one.group, target: one.target, current, proposed }];
  });
  const distinct = [...new Set(rows.map(({ target }) => target))];
  const byRank = compared(rows, spearman, seed);
  const isHigh = (target: number) => target > Math.min(...distinct);
  const byPairs =
    distinct.length === 2 ? compared(rows, (values, targets) => auc(values, targets.map(isHigh)), seed) : null;
  const { low, high } = (byPairs ?? byRank).difference;
  const under = fitted === null ? share : proposedShares(fitted);
  const crosses = (from: ReadonlyMap<string, number>, to: ReadonlyMap<string, number>) =>
    usable.filter((one) => {
      const [before, after] = [totalUnder(one, told, from), totalUnder(one, told, to)];
      return before !== null && after !== null && before < minScore && after >= minScore;
    }).length;
  return {
    ...{ samples: samples.length, groups, leftOut, spearman: byRank, auc: byPairs },
    parts: parts.map(({ name }) => ({
      ...{ name, current: share.get(name)!, proposed: fitted === null ? null : rounded(under.get(name)!) },
      kept: !candidates.includes(name),
    })),
    verdict: verdictOf({ few, fitted, low, high }),
    ...{ gained: crosses(share, under), lost: crosses(under, share) },
  };
}

const rounded = (weight: number): number => Math.round(weight * 1000) / 1000;

function verdictOf(about: {
  few: boolean;
  fitted: unknown;
  low: number | null;
  high: number | null;
}): Proposal['verdict'] {
  const { few, fitted, low, high } = about;
  if (few) return 'too few';
  if (fitted === null) return 'none';
  if (low !== null && low > 0) return 'better';
  return high !== null && high < 0 ? 'worse' : 'not shown';
}

function compared(
  rows: readonly Row[],
  figure: (values: readonly number[], targets: readonly number[]) => number | null,
  seed: number,
): Compared {
  const groups = groupsOf(rows, ({ group }) => group);
  const of = (some: readonly Row[], which: 'current' | 'proposed') =>
    figure(
      some.map((row) => row[which]),
      some.map(({ target }) => target),
    );
  const difference = (some: readonly Row[]) => {
    const [current, proposed] = [of(some, 'current'), of(some, 'proposed')];
    return current === null || proposed === null ? null : proposed - current;
  };
  const told = (value: (some: readonly Row[]) => number | null): Figure => {
    const interval = bootstrap(groups, value, { seed });
    return { value: value(rows), low: interval?.low ?? null, high: interval?.high ?? null };
  };
  return {
    current: told((some) => of(some, 'current')),
    proposed: told((some) => of(some, 'proposed')),
    difference: told(difference),
  };
}
