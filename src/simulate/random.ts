/**
 * Random numbers that depend on their seed and on nothing else, so that a task, a customer and an episode come out the
 * same on every machine. FNV-1a hashes the seed's text, sfc32 (Chris Doty-Humphrey's PractRand generator) makes the
 * stream. Not for secrets.
 */
export type Random = {
  /** In [0, 1). */
  next(): number;
  /** An integer from low to high, both included. */
  integer(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** The named choice drawn in proportion to its weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
  shuffle<T>(list: readonly T[]): T[];
};

/** A 32-bit hash of a text: equal texts, equal numbers. */
export function hash(text: string, basis = 0x811c9dc5): number {
  let h = basis >>> 0;
  for (let i = 0; i < text.length; i++) {
    h ^= text.charCodeAt(i);
    h = Math.imul(h, 0x01000193) >>> 0;
  }
  // FNV leaves the high bits of short texts nearly alike; one avalanche round spreads them.
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b) >>> 0;
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35) >>> 0;
  return (h ^ (h >>> 16)) >>> 0;
}

/** The parts are joined, so `random(7, 'opening')` and `random(7, 'database')` are independent streams. */
export function random(...seed: readonly (string | number)[]): Random {
  const text = seed.join('\u0000');
  let a = hash(text);
  let b = hash(text, 0x1234567);
  let c = hash(text, 0x89abcde);
  let counter = 1;
  const next = (): number => {
    const t = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    return (t >>> 0) / 4294967296;
  };
  for (let i = 0; i < 12; i++) next();
  const integer = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  const pick = <T>(list: readonly T[]): T => {
    if (list.length === 0) throw new Error('Cannot pick from an empty list; give pick() at least one value.');
    return list[integer(0, list.length - 1)] as T;
  };
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick,
    weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
      const entries = Object.entries(weights) as [K, number][];
      const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
      if (!(total > 0)) throw new Error(`Weights must sum to more than 0, got ${total}; give at least one a weight.`);
      let left = next() * total;
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name;
      }
      return entries.findLast(([, weight]) => weight > 0)![0];
    },
    shuffle<T>(list: readonly T[]): T[] {
      const copy = [...list];
      for (let i = copy.length - 1; i > 0; i--) {
        const j = integer(0, i);
        [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
      }
      return copy;
    },
  };
}
