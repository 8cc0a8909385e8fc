/**
 * MinHash: a few numbers that stand for a set of words, and by which sets that share most of their words find each other
 * without every set being compared with every other. Pure. The share of numbers that two signatures have in common is about the
 * share of words that the sets have in common (Jaccard); an index by bands of the signature (LSH) names the few sets worth
 * comparing. What is missed is two similar sets of which no band agrees; `bands` says how seldom that is.
 */
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

/** Signatures kept one after the other: a hundred thousand arrays of their own would take three times the memory of what is in them. */
export function signatureShelf(perBoard = 4096): (signature: Signature) => Signature {
  let board = new Uint32Array(0);
  let used = 0;
  return (signature) => {
    if (used === board.length) {
      board = new Uint32Array(perBoard * hashes);
      used = 0;
    }
    board.set(signature, used);
    used += hashes;
    return board.subarray(used - hashes, used);
  };
}

export function similarity(a: Signature, b: Signature): number {
  let same = 0;
  for (let i = 0; i < hashes; i++) if (a[i] === b[i]) same++;
  return same / hashes;
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

export type Similar = {
  /** Numbers it 0, 1, 2, … */
  add(signature: Signature): void;
  /** Numbers of those with a band in common, newest first in each band; some come more than once. */
  near(signature: Signature): Generator<number>;
};

/** No bucket is walked further: what lies behind so many alike is alike, or somebody's attempt at a slow afternoon. */
const mostInBucket = 256;

/** `bands` divides `hashes`. Two sets of similarity s meet with probability 1 − (1 − s^(hashes / bands))^bands. */
export function similarIndex(bands: number): Similar {
  const rows = hashes / bands;
  /** Band → its newest entry; `older` leads from an entry to the one before. Entry e belongs to item ⌊e / bands⌋. */
  const newest = lastOf();
  let older = new Int32Array(1024);
  let entries = 0;
  const keyOf = (signature: Signature, band: number): number => {
    let key = band + 1;
    for (let i = band * rows; i < (band + 1) * rows; i++) key = mixed(key ^ signature[i]!);
    return key | 0;
  };
  return {
    add(signature) {
      for (let band = 0; band < bands; band++) {
        if (entries === older.length) older = grown(older);
        older[entries] = newest.put(keyOf(signature, band), entries);
        entries++;
      }
    },
    *near(signature) {
      for (let band = 0; band < bands; band++) {
        let entry = newest.get(keyOf(signature, band));
        for (let walked = 0; entry >= 0 && walked < mostInBucket; walked++) {
          yield Math.floor(entry / bands);
          entry = older[entry]!;
        }
      }
    },
  };
}

function grown(list: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(2 * list.length);
  longer.set(list);
  return longer;
}

/** Integer → the last number put under it, −1 for none. A Map takes four times the memory and ends at 16.7 million. */
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
