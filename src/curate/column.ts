/**
 * Numbers of many conversations, one after the other, in blocks: an array of objects would take ten times the memory, and one block
 * that doubles three times while it is copied.
 */
type Block = Float64Array | Uint32Array;

export type Column = {
  readonly length: number;
  push(value: number): void;
  get(i: number): number;
  set(i: number, value: number): void;
  /** Forgets all behind the first so many. */
  cut(length: number): void;
};

const bitsOfBlock = 14;
const inBlock = 2 ** bitsOfBlock;

export function column(kind: { new (length: number): Block }): Column {
  const blocks: Block[] = [];
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(value) {
      if (length >>> bitsOfBlock === blocks.length) blocks.push(new kind(inBlock));
      blocks[length >>> bitsOfBlock]![length & (inBlock - 1)] = value;
      length++;
    },
    get: (i) => blocks[i >>> bitsOfBlock]![i & (inBlock - 1)]!,
    set(i, value) {
      blocks[i >>> bitsOfBlock]![i & (inBlock - 1)] = value;
    },
    cut(to) {
      length = to;
      blocks.length = Math.ceil(to / inBlock);
    },
  };
}

/** Those of `all` that are marked, in their order. */
export function marked(all: Uint32Array, isMarked: (one: number, i: number) => boolean): Uint32Array {
  const kept = new Uint32Array(all.length);
  let count = 0;
  for (let i = 0; i < all.length; i++) if (isMarked(all[i]!, i)) kept[count++] = all[i]!;
  return kept.subarray(0, count);
}

/** Those of equal keys together, at least two, each ascending. A key is 32 bits. `sorted`: room for whoever asks again and again. */
export function* alikeIn(
  all: Uint32Array,
  keyOf: (one: number) => number,
  sorted = new BigUint64Array(all.length),
): Generator<Uint32Array> {
  // Sorted as one number each: the key above the number itself, lower half first as on every machine that Node runs on.
  const halves = new Uint32Array(sorted.buffer);
  for (let i = 0; i < all.length; i++) {
    halves[2 * i] = all[i]!;
    halves[2 * i + 1] = keyOf(all[i]!);
  }
  sorted.sort();
  for (let from = 0; from < all.length; ) {
    let to = from + 1;
    while (to < all.length && halves[2 * to + 1] === halves[2 * from + 1]) to++;
    if (to - from > 1) {
      const group = new Uint32Array(to - from);
      for (let i = from; i < to; i++) group[i - from] = halves[2 * i]!;
      yield group;
    }
    from = to;
  }
}
