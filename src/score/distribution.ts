/** How scores are spread, and how they would be with other weights. Pure. */
import { weigh } from './weighted.ts';

export const bins = 20;

export type Spread = {
  readonly measured: number;
  readonly mean: number | null;
  /** How many lie in each twentieth of 0–1; 1 belongs to the last. */
  readonly bins: readonly number[];
};

export function spreadOf(values: readonly (number | null)[]): Spread {
  const known = values.filter((value) => value !== null);
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of known) counts[Math.min(bins - 1, Math.floor(value * bins))]!++;
  const sum = known.reduce((total, value) => total + value, 0);
  return { measured: known.length, mean: known.length === 0 ? null : sum / known.length, bins: counts };
}

type Part = { readonly value: number | null; readonly weight: number; readonly penalty?: true | undefined };

/** The total with other weights: a part that is not named keeps its own, one with 0 is left out. */
export const reweighed = (
  parts: Readonly<Record<string, Part>>,
  weights: Readonly<Record<string, number>>,
): number | null =>
  weigh(
    Object.entries(parts).flatMap(([name, part]) => {
      const weight = Object.hasOwn(weights, name) ? weights[name]! : part.weight;
      return weight > 0 ? [{ ...part, weight }] : [];
    }),
  ).value;

export type Kept = {
  readonly current: number;
  readonly proposed: number;
  readonly gained: number;
  readonly lost: number;
};

/** How many would pass a threshold, and which way those go that change sides. */
export function keptBy(pairs: readonly (readonly [number | null, number | null])[], threshold: number): Kept {
  const passes = (value: number | null): boolean => value !== null && value >= threshold;
  const count = (is: (current: boolean, proposed: boolean) => boolean) =>
    pairs.filter(([current, proposed]) => is(passes(current), passes(proposed))).length;
  return {
    current: count((current) => current),
    proposed: count((_, proposed) => proposed),
    gained: count((current, proposed) => !current && proposed),
    lost: count((current, proposed) => current && !proposed),
  };
}
