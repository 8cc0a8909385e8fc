/**
 * Everything random in training, as a function of (seed, position): which examples a step sees, which tasks it plays,
 * which seed it samples with. There is no generator whose state would have to be saved: step 41 after a crash draws what
 * step 41 would have drawn.
 */
import { seeded } from '../score/resample.ts';

/** Mixes numbers into one 32-bit seed (the finaliser of MurmurHash3 after each word). */
export function mixSeed(...parts: readonly number[]): number {
  let h = 0x9e3779b9;
  for (const part of parts) {
    h = Math.imul(h ^ (part | 0), 0x85ebca6b);
    h ^= h >>> 13;
    h = Math.imul(h, 0xc2b2ae35);
    h ^= h >>> 16;
  }
  return h >>> 0;
}

/** 0 … n − 1 in a random order. */
export function shuffled(n: number, seed: number): number[] {
  const next = seeded(seed);
  const order = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

/**
 * Items `from` … `from + count − 1` of the endless stream "all n in a random order, then all n in another, …". Every item
 * is seen once before any is seen twice.
 */
export function draw(n: number, from: number, count: number, seed: number): number[] {
  if (n < 1) throw new Error(`There is nothing to draw from: ${n} items.`);
  const out: number[] = [];
  let epoch = -1;
  let order: number[] = [];
  for (let position = from; position < from + count; position++) {
    const at = Math.floor(position / n);
    if (at !== epoch) {
      epoch = at;
      order = shuffled(n, mixSeed(seed, epoch));
    }
    out.push(order[position % n]!);
  }
  return out;
}
