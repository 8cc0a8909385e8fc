/**
 * The bootstrap: how far a figure moves when other conversations might as well have been seen. Whole groups are drawn (all tries of a
 * task, all that is about one conversation), since what is in a group is not independent. Efron's percentile interval; the same
 * seed gives the same interval.
 */

/** Numbers in [0, 1) that follow from the seed alone (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** In an order that follows from the seed. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const next = seeded(seed);
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [copy[i], copy[j]] = [copy[j]!, copy[i]!];
  }
  return copy;
}

/** By what `of` says; in the order in which the groups first appear. */
export function groupsOf<T>(items: readonly T[], of: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = of(item);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

export type Interval = { readonly low: number; readonly high: number };

/** 95% of the figures of `times` draws lie within; null: too few draws gave a figure. */
export function bootstrap<T>(
  groups: readonly (readonly T[])[],
  figure: (sample: readonly T[]) => number | null,
  { seed = 1, times = 1000 }: { readonly seed?: number; readonly times?: number } = {},
): Interval | null {
  if (groups.length < 2) return null;
  const next = seeded(seed);
  const figures: number[] = [];
  for (let k = 0; k < times; k++) {
    const sample: T[] = [];
    for (let i = 0; i < groups.length; i++)
      for (const item of groups[Math.floor(next() * groups.length)]!) sample.push(item);
    const value = figure(sample);
    if (value !== null) figures.push(value);
  }
  if (figures.length < times / 2) return null;
  figures.sort((a, b) => a - b);
  const at = (share: number) => {
    const place = share * (figures.length - 1);
    const below = Math.floor(place);
    const above = Math.min(figures.length - 1, below + 1);
    return figures[below]! + (place - below) * (figures[above]! - figures[below]!);
  };
  return { low: at(0.025), high: at(0.975) };
}
