/**
 * MinHash: a few numbers that stand for a set of words, and by which sets that share most of their words find each other
 * without every set being compared with every other. Pure. The share of numbers that two signatures have in common is about the
 * share of words that the sets have in common (Jaccard); keys of bands of the signature (LSH) name the few sets worth
 * comparing. What is missed is two similar sets of which no band agrees; `bands` says how seldom that is.
 */
import { column } from './column.ts';

export const hashes = 60;
export type Signature = Uint32Array;

/** FNV-1a of UTF-16 units, mixed: good enough to tell words apart, and ten times as fast as a digest. */
export function hashWord(word: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193);
  return mixed(hash);
}

function mixed(value: number): number {
  let x = value ^ (value >>> 16);
  x = Math.imul(x, 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

const seeds = Uint32Array.from({ length: hashes }, (_, i) => mixed(0x9e3779b9 * (i + 1)));

export function signatureOf(items: Iterable<number>): Signature {
  const least = new Uint32Array(hashes).fill(0xffffffff);
  for (const item of items)
    for (let i = 0; i < hashes; i++) {
      const value = mixed(item ^ seeds[i]!);
      if (value < least[i]!) least[i] = value;
    }
  return least;
}

export function similarity(a: Signature, b: Signature): number {
  let same = 0;
  for (let i = 0; i < hashes; i++) if (a[i] === b[i]) same++;
  return same / hashes;
}

/** How many bits of 32 are set. */
export function onesIn(bits: number): number {
  let x = bits - ((bits >>> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Of ascending numbers, each once. */
export function jaccard(a: Uint32Array, b: Uint32Array): number {
  let [i, j, both] = [0, 0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) both++;
    const step = a[i]! - b[j]!;
    if (step <= 0) i++;
    if (step >= 0) j++;
  }
  const either = a.length + b.length - both;
  return either === 0 ? 1 : both / either;
}

/** No bucket is walked further: what lies behind so many alike is alike, or somebody's attempt at a slow afternoon. */
export const mostInBucket = 256;

/**
 * By what those alike find each other: two sets of similarity s have the key of at least one of `bands` in common with probability
 * 1 − (1 − s^(hashes / bands))^bands. `bands` divides `hashes`.
 */
export function bandKey(signature: Signature, band: number, bands: number): number {
  const rows = hashes / bands;
  let key = band + 1;
  for (let i = band * rows; i < (band + 1) * rows; i++) key = mixed(key ^ signature[i]!);
  return key;
}

/** Numbers by keys of 32 bits, newest first under each: a Map takes four times the memory and ends at 16.7 million. */
export type Buckets = {
  add(key: number, number: number): void;
  /** The newest entry, −1: none. */
  newest(key: number): number;
  older(entry: number): number;
  number(entry: number): number;
};

export function createBuckets(): Buckets {
  const heads = lastOf();
  const older = column(Uint32Array);
  const numbers = column(Uint32Array);
  return {
    add(key, number) {
      older.push(heads.put(key | 0, numbers.length) + 1);
      numbers.push(number);
    },
    newest: (key) => heads.get(key | 0),
    older: (entry) => older.get(entry) - 1,
    number: (entry) => numbers.get(entry),
  };
}

/** Integer → the last number put under it, −1 for none. */
function lastOf() {
  let keys = new Int32Array(1024);
  let values = new Int32Array(1024).fill(-1);
  let count = 0;
  const placeOf = (key: number): number => {
    const most = keys.length - 1;
    let at = key & most; // keys are mixed
    while (values[at] !== -1 && keys[at] !== key) at = (at + 1) & most;
    return at;
  };
  const grow = (): void => {
    const [oldKeys, oldValues] = [keys, values];
    keys = new Int32Array(2 * oldKeys.length);
    values = new Int32Array(2 * oldKeys.length).fill(-1);
    for (const [i, value] of oldValues.entries()) {
      if (value === -1) continue;
      const at = placeOf(oldKeys[i]!);
      keys[at] = oldKeys[i]!;
      values[at] = value;
    }
  };
  return {
    get: (key: number): number => values[placeOf(key)]!,
    /** Returns what was there before. */
    put(key: number, value: number): number {
      if (2 * count >= keys.length) grow();
      const at = placeOf(key);
      const before = values[at]!;
      if (before === -1) count++;
      keys[at] = key;
      values[at] = value;
      return before;
    },
  };
}
