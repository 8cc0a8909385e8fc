/**
 * What an agent usually does: the median, over a sample of its conversations of the four weeks before, of what a scorer measures.
 * The first weeks of an agent have none before them and are compared with themselves. A week's median is kept once it rests on
 * enough conversations, and never moves again: otherwise a score could not be computed again. Until then there is none.
 */
import type { Origin } from '../collect/trajectory.ts';
import { readNorm, saveNorm } from '../store/norms.ts';
import { dayOf } from '../store/partitions.ts';
import type { Store } from '../store/postgres.ts';
import {
  batchesOf,
  placedKey,
  readSignalsOf,
  readSizes,
  readTurnIds,
  readTurnsOf,
  windowPages,
} from '../store/window.ts';
import type { Norm } from './scorer.ts';
import type { RewardSpec } from './weighted.ts';

const dayMs = 86_400_000;
const before = 28 * dayMs;
export const enoughForNorm = 20;
/** A median of so many moves little with more. */
const sampleSize = 400;
const longest = 200; // turns

/** The Monday of its week, UTC. */
export const weekOf = (at: Date): string => dayOf(new Date(+at - ((at.getUTCDay() + 6) % 7) * dayMs));

export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

type Sampled = { readonly agent: string; readonly origin: Origin; readonly since: Date; readonly until: Date };

async function sampleOf(store: Store, norm: Norm, window: Sampled): Promise<number[]> {
  const values: number[] = [];
  for await (const page of windowPages(store, window)) {
    const fit = page.filter(({ trajectory }) => trajectory.turns <= longest);
    const turnIds = await readTurnIds(store, fit);
    const signals = await readSignalsOf(store, fit, turnIds);
    const sizes = await readSizes(store, fit);
    for (const batch of batchesOf(
      fit.filter((one) => sizes.get(placedKey(one)) !== null),
      sizes,
    )) {
      const turns = await readTurnsOf(store, batch);
      for (const one of batch) {
        const key = placedKey(one);
        const value = norm.of({
          trajectory: one.trajectory,
          turns: turns.get(key) ?? [],
          signals: signals.get(key) ?? [],
        });
        if (value !== null) values.push(value);
      }
      if (values.length >= sampleSize) return values;
    }
  }
  return values;
}

export type Norms = {
  /** Those of the week that the conversation began in. */
  at(startedAt: Date): Promise<ReadonlyMap<string, number>>;
};

const none: ReadonlyMap<string, number> = new Map();

export function normsOf(
  store: Store,
  {
    agent,
    origin,
    spec,
    now,
    keep = true,
  }: { agent: string; origin: Origin; spec: RewardSpec; now: Date; keep?: boolean },
): Norms {
  const wanted = [...new Map(spec.parts.flatMap(({ scorer: { norm } }) => (norm ? [[norm.name, norm]] : []))).values()];
  const weeks = new Map<string, Promise<ReadonlyMap<string, number>>>();
  const median = async (norm: Norm, week: string): Promise<number | null> => {
    const known = await readNorm(store, { agent, name: norm.name, week });
    if (known !== null) return known;
    const monday = new Date(`${week}T00:00:00Z`);
    const windows = [
      { since: new Date(+monday - before), until: monday },
      { since: monday, until: new Date(Math.min(+now, +monday + 7 * dayMs)) },
    ];
    for (const window of windows) {
      const values = await sampleOf(store, norm, { agent, origin, ...window });
      if (values.length < enoughForNorm) continue;
      const value = medianOf(values);
      return keep ? saveNorm(store, { agent, name: norm.name, week, value, sample: values.length, at: now }) : value;
    }
    return null;
  };
  const ofWeek = async (week: string): Promise<ReadonlyMap<string, number>> => {
    const found = new Map<string, number>();
    for (const norm of wanted) {
      const value = await median(norm, week);
      if (value !== null) found.set(norm.name, value);
    }
    return found;
  };
  return {
    async at(startedAt) {
      if (wanted.length === 0) return none;
      const week = weekOf(startedAt);
      const known = weeks.get(week) ?? ofWeek(week);
      weeks.set(week, known);
      return known;
    },
  };
}
