/**
 * Two rewards over the same conversations: how alike they order them, which conversations change places, what crosses the
 * threshold of curation, and which of the two people agree with more. Pure.
 */
import type { BothScores } from '../store/judged.ts';
import { ranks, spearman } from './ranks.ts';
import { bootstrap } from './resample.ts';

export type Swap = {
  readonly trajectory: string;
  readonly a: number;
  readonly b: number;
  /** 1 is the best. */
  readonly placeA: number;
  readonly placeB: number;
  /** The part whose share of the total changed most, and by how much. */
  readonly because: string | null;
};

export type Comparison = {
  readonly conversations: number;
  readonly spearman: number | null;
  readonly meanA: number | null;
  readonly meanB: number | null;
  /** Pairs of conversations that the two order differently, of all that both order. */
  readonly reordered: number | null;
  /** Of the threshold: good under B and not under A, and the other way round. */
  readonly gained: number;
  readonly lost: number;
  readonly swaps: readonly Swap[];
  /** Where there are labels: correlation of each with them, and of B less A. */
  readonly labels: {
    readonly count: number;
    readonly a: number | null;
    readonly b: number | null;
    readonly low: number | null;
    readonly high: number | null;
  };
};

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

export function compareRewards(
  both: readonly BothScores[],
  { minScore, labels, most = 20 }: { minScore: number; labels: ReadonlyMap<string, number>; most?: number },
): Comparison {
  const [a, b] = [both.map((one) => one.a), both.map((one) => one.b)];
  const places = (totals: readonly number[]) => ranks(totals.map((total) => -total));
  const [placesA, placesB] = [places(a), places(b)];
  const swaps = both
    .map(
      (one, i): Swap => ({
        ...{ trajectory: one.trajectory, a: one.a, b: one.b, placeA: placesA[i]!, placeB: placesB[i]! },
        because: because(one),
      }),
    )
    .filter(({ placeA, placeB }) => placeA !== placeB)
    .sort((x, y) => Math.abs(y.placeA - y.placeB) - Math.abs(x.placeA - x.placeB))
    .slice(0, most);
  const said = both.flatMap((one) => {
    const target = labels.get(one.trajectory);
    return target === undefined ? [] : [{ ...one, target }];
  });
  const agree = (some: readonly (BothScores & { target: number })[], which: 'a' | 'b') =>
    spearman(
      some.map((one) => one[which]),
      some.map(({ target }) => target),
    );
  const difference = (some: typeof said): number | null => {
    const [ofA, ofB] = [agree(some, 'a'), agree(some, 'b')];
    return ofA === null || ofB === null ? null : ofB - ofA;
  };
  const interval =
    said.length < 10
      ? null
      : bootstrap(
          said.map((one) => [one]),
          (some) => difference([...some]),
        );
  return {
    conversations: both.length,
    spearman: spearman(a, b),
    meanA: mean(a),
    meanB: mean(b),
    reordered: reorderedShare(a, b),
    gained: both.filter((one) => one.a < minScore && one.b >= minScore).length,
    lost: both.filter((one) => one.a >= minScore && one.b < minScore).length,
    swaps,
    labels: {
      ...{ count: said.length, a: agree(said, 'a'), b: agree(said, 'b') },
      ...{ low: interval?.low ?? null, high: interval?.high ?? null },
    },
  };
}

/** By Kendall's pairs; of many conversations the first two thousand, since pairs grow with the square. */
function reorderedShare(a: readonly number[], b: readonly number[]): number | null {
  const n = Math.min(a.length, 2000);
  let [ordered, other] = [0, 0];
  for (let i = 0; i < n; i++)
    for (let j = i + 1; j < n; j++) {
      const sign = Math.sign(a[i]! - a[j]!) * Math.sign(b[i]! - b[j]!);
      if (sign === 0) continue;
      ordered++;
      if (sign < 0) other++;
    }
  return ordered === 0 ? null : other / ordered;
}

function because({ partsA, partsB }: BothScores): string | null {
  const share = (parts: BothScores['partsA']) => {
    const known = Object.entries(parts).filter(([, { value }]) => value !== null);
    const weight = known.reduce((sum, [, part]) => sum + part.weight, 0);
    return new Map(known.map(([name, part]) => [name, (part.weight * part.value!) / weight]));
  };
  const [before, after] = [share(partsA), share(partsB)];
  let most: { name: string; by: number } | null = null;
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const by = (after.get(name) ?? 0) - (before.get(name) ?? 0);
    if (most === null || Math.abs(by) > Math.abs(most.by)) most = { name, by };
  }
  if (most === null || Math.abs(most.by) < 0.0005) return null;
  return `${most.name} ${most.by > 0 ? '+' : '−'}${Math.abs(most.by).toFixed(3)}`;
}
