/**
 * Whether a reward still says what it said: the mean of each part, and how often it could be measured, this week against the week
 * before. A part that moves although nobody changed the model is a judge that was replaced, a tool that fails, or other users.
 * Pure. Intervals are of the difference of two means (normal, unequal variances); with few scores there is none.
 */
import type { PartWeek } from '../store/judged.ts';

export type Drift = {
  /** null: the total. */
  readonly part: string | null;
  /** Mean of each week, the latest first; null: nothing was measured. */
  readonly means: readonly (number | null)[];
  /** Share of the week's scores in which it was measured. */
  readonly measured: readonly number[];
  readonly change: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly state: 'steady' | 'moved' | 'unmeasured';
};

/** In each of the two weeks. */
const fewest = 30;
/** A change that is smaller than this is not worth a look, however certain. */
const least = 0.02;

export function driftOf(rows: readonly PartWeek[], weeks: number): Drift[] {
  const names = [...new Set(rows.map(({ part }) => part))];
  return names.map((part): Drift => {
    const of = Array.from({ length: weeks }, (_, week) => rows.find((row) => row.part === part && row.week === week));
    const [now, before] = of;
    const shown = {
      part,
      means: of.map((row) => row?.mean ?? null),
      measured: of.map((row) => (row === undefined || row.scored === 0 ? 0 : row.measured / row.scored)),
    };
    if (!now || !before || now.measured < fewest || before.measured < fewest)
      return { ...shown, change: null, low: null, high: null, state: 'unmeasured' };
    const change = now.mean! - before.mean!;
    const half = 1.96 * Math.sqrt((now.variance ?? 0) / now.measured + (before.variance ?? 0) / before.measured);
    const moved = Math.abs(change) > half && Math.abs(change) >= least;
    return { ...shown, change, low: change - half, high: change + half, state: moved ? 'moved' : 'steady' };
  });
}
