/**
 * How far the candidate's way of answering has moved from the baseline's: KL(candidate ‖ baseline) in nats per token, on what
 * the candidate wrote while it played the suite. The estimate is the mean of log candidate − log baseline (k1 in train/kl.ts),
 * which is unbiased at temperature 1. A large drift is no failure by itself; a model that learned much has moved far.
 */
import type { Engine } from '../engine/engine.ts';
import type { Episode } from '../simulate/episode.ts';
import { sequences } from '../train/datum.ts';

const batch = 64;

/** null where the episodes have no exact tokens with logprobs, or nothing was written. */
export async function measureDrift(
  engine: Engine,
  baseline: string,
  episodes: readonly Episode[],
  signal?: AbortSignal,
): Promise<number | null> {
  const written = episodes.flatMap(({ turns }) =>
    sequences(
      turns.flatMap(({ tokens }) =>
        tokens?.rawLogprobs
          ? [{ prompt: tokens.prompt, completion: tokens.completion, logprobs: tokens.rawLogprobs }]
          : [],
      ),
    ),
  );
  let sum = 0;
  let count = 0;
  for (let from = 0; from < written.length; from += batch) {
    signal?.throwIfAborted();
    const part = written.slice(from, from + batch);
    const { logprobs } = await engine.forward(
      baseline,
      part.map(({ tokens, targets }) => ({ tokens, targets })),
    );
    for (const [i, { turns, logprobs: own }] of part.entries())
      for (let t = 0; t < turns.length; t++) {
        if (turns[t]! < 0) continue;
        sum += own[t]! - logprobs[i]![t]!; // k1 of train/kl.ts
        count++;
      }
  }
  return count === 0 ? null : sum / count;
}
