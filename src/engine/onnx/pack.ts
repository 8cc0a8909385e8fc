/**
 * Lays training data of different lengths out in rectangles. A batch is `rows` × `length` tokens; a row holds several
 * sequences one after another when they fit, kept apart by the attention mask. Lengths are sorted, so a batch is as wide as
 * its own longest sequence and no wider, and batches are small, which bounds the memory of activations: gradients
 * are sums, so many small batches give what one large one would.
 */
import type { Datum, Loss } from '../engine.ts';

/** Where a sequence lies: `row`, first column `start`. */
type Place = { readonly datum: number; readonly row: number; readonly start: number; readonly size: number };
export type Plan = { readonly rows: number; readonly length: number; readonly places: readonly Place[] };

/** Row lengths are multiples of this: fewer distinct shapes, and vector instructions without a tail. */
const STEP = 8;

/** Distributes sequences over batches of at most about `budget` tokens: first fit, longest first. */
export function planBatches(sizes: readonly number[], budget: number): Plan[] {
  const plans: Plan[] = [];
  let waiting = sizes.map((size, datum) => ({ size, datum })).sort((a, b) => b.size - a.size || a.datum - b.datum);
  while (waiting.length > 0) {
    const length = Math.ceil(waiting[0]!.size / STEP) * STEP;
    const mostRows = Math.max(1, Math.floor(budget / length));
    const used: number[] = [];
    const places: Place[] = [];
    const left: typeof waiting = [];
    for (const { size, datum } of waiting) {
      let row = used.findIndex((taken) => taken + size <= length);
      if (row === -1 && used.length < mostRows) row = used.push(0) - 1;
      if (row === -1) left.push({ size, datum });
      else {
        places.push({ datum, row, start: used[row]!, size });
        used[row]! += size;
      }
    }
    plans.push({ rows: used.length, length, places });
    waiting = left;
  }
  return plans;
}

/** A batch as the graphs take it; arrays are [row][column] except `mask`, which is [row][column][column]. */
export type Batch = {
  readonly tokens: Int32Array;
  readonly targets: Int32Array;
  readonly positions: Int32Array;
  readonly mask: Float32Array;
  /** 1 when every row has the same plain causal mask, else the number of rows. */
  readonly maskRows: number;
  readonly sampled: Float32Array;
  readonly advantages: Float32Array;
};

/** Large enough that exp() is exactly 0 beside any score, small enough that adding a score stays finite. */
const HIDDEN = -1e30;

export function fillBatch(plan: Plan, data: readonly Datum[], loss?: Loss): Batch {
  const { rows, length, places } = plan;
  const size = rows * length;
  const batch = {
    tokens: new Int32Array(size),
    targets: new Int32Array(size),
    positions: new Int32Array(size),
    sampled: new Float32Array(size),
    advantages: new Float32Array(size),
  };
  for (const { datum: index, row, start, size: count } of places) {
    const datum = data[index]!;
    const offset = row * length + start;
    batch.tokens.set(datum.tokens, offset);
    batch.targets.set(datum.targets, offset);
    for (let i = 0; i < count; i++) batch.positions[offset + i] = i;
    if (loss === undefined) continue;
    batch.advantages.set((loss.kind === 'cross_entropy' ? datum.weights : datum.advantages)!, offset);
    if (loss.kind !== 'cross_entropy') batch.sampled.set(datum.logprobs!, offset);
  }
  const shared = places.every(({ start }) => start === 0);
  return { ...batch, ...attentionMask(shared ? { ...plan, rows: 1, places: [] } : plan) };
}

/** Each token sees its own sequence up to itself. Padding behind a sequence sees it too, and is seen by nothing real. */
function attentionMask({ rows, length, places }: Plan): { mask: Float32Array; maskRows: number } {
  const mask = new Float32Array(rows * length * length).fill(HIDDEN);
  const firstVisible = new Int32Array(rows * length);
  for (const { row, start } of places) firstVisible.fill(start, row * length + start, (row + 1) * length);
  for (let i = 0; i < rows * length; i++) {
    const line = i * length;
    mask.fill(0, line + firstVisible[i]!, line + (i % length) + 1);
  }
  return { mask, maskRows: rows };
}
