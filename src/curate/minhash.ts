/**
 * MinHash: a few numbers that stand for a set of words, and by which sets that share most of their words find each other
 * without every set being compared with every other. Pure. The share of numbers that two signatures have in common is about the
 * share of words that the sets have in common (Jaccard); keys of bands of the signature (LSH) name the few sets worth
 * comparing. What is missed is two similar sets of which no band agrees; `bands` says how seldom that is.
 */
import type { Column } from './column.ts';

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

/** Numbered 0, 1, 2, … and found again by keys of 32 bits, which several may share. */
export type Numbered = {
  /** −1: none of this key is it. */
  find(key: number, isIt: (number: number) => boolean): number;
  /** Returns its number. */
  add(key: number): number;
};

/** Some seven bytes of each in memory: a Map takes ten times as many and ends at 16.7 million. Keys are mixed. */
export function createNumbered(keys: Column): Numbered {
  /** The number + 1 at the place that its key says, or at the next that is free. */
  let places = new Uint32Array(1024);
  const put = (key: number, number: number): void => {
    let at = (key & (places.length - 1)) >>> 0;
    while (places[at] !== 0) at = (at + 1) % places.length;
    places[at] = number + 1;
  };
  return {
    find(key, isIt) {
      for (let at = (key & (places.length - 1)) >>> 0; places[at] !== 0; at = (at + 1) % places.length) {
        const number = places[at]! - 1;
        if (keys.get(number) === key && isIt(number)) return number;
      }
      return -1;
    },
    add(key) {
      const number = keys.length;
      keys.push(key);
      if (4 * keys.length > 3 * places.length) {
        places = new Uint32Array(2 * places.length);
        for (let i = 0; i < number; i++) put(keys.get(i), i);
      }
      put(key, number);
      return number;
    },
  };
}
