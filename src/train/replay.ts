/**
 * Replay of a broad mix against forgetting: a share of each batch is ordinary, good examples of everything the model can
 * already do, learned by cross-entropy beside the new objective. Which ones follows from (seed, step).
 */
import { draw, mixSeed } from './order.ts';
import type { Example } from './sft.ts';

export type Replay = {
  readonly examples: readonly Example[];
  /** Share of the whole batch that is replayed, 0 ≤ share < 1. */
  readonly share: number;
};

/** The replayed examples that go with `fresh` new ones at this step. */
export function replayed(replay: Replay | undefined, fresh: number, step: number, seed: number): Example[] {
  if (!replay || replay.examples.length === 0 || replay.share === 0) return [];
  if (!(replay.share > 0 && replay.share < 1))
    throw new Error(`A replay share of ${replay.share} leaves no room for new data; use a share between 0 and 1.`);
  const count = Math.max(1, Math.round((fresh * replay.share) / (1 - replay.share)));
  return draw(replay.examples.length, step * count, count, mixSeed(seed, 0x7e91a7)).map((i) => replay.examples[i]!);
}
