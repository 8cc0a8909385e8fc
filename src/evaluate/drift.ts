/**
 * How far the candidate's way of answering has moved from another's, the baseline's or that of what its line began with: KL(candidate ‖
 * other) in nats per token, on what the candidate wrote while it played the suite. The estimate is the mean of log candidate − log other
 * (k1 in train/kl.ts), which is unbiased at temperature 1. Where both stand behind the gateway, the other is asked what it would have
 * given each token (`prompt_logprobs`, which vLLM and Pawl's engine know).
 */
import { parseUntrusted } from '../collect/untrusted.ts';
import type { Engine } from '../engine/engine.ts';
import type { Episode } from '../simulate/episode.ts';
import { sequences } from '../train/datum.ts';
import { upTo } from '../up-to.ts';

const batch = 64;

/** One answer as its server told it; logprobs are the model's own, before temperature. */
export type WrittenTokens = {
  readonly prompt: readonly number[];
  readonly completion: readonly number[];
  readonly logprobs: readonly number[];
};

/** `model`: of the engine, whose way it is measured from. null where the episodes have no exact tokens with logprobs, or nothing was written. */
export async function measureDrift(
  engine: Engine,
  model: string,
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
      model,
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

type Behind = {
  readonly url: string;
  readonly key: string;
  readonly agent: string;
  /** Name of the release whose way it is measured from. */
  readonly release: string;
  readonly timeoutSeconds: number;
  readonly concurrency: number;
};

/** So many calls without one answer, and a server is not asked about the rest: each may take its whole time. */
const mostInVain = 3;

/** null where the release's server did not say so of more than half of them. */
export async function measureDriftThrough(
  behind: Behind,
  written: readonly WrittenTokens[],
  signal?: AbortSignal,
): Promise<number | null> {
  let next = 0;
  let answered = 0;
  let failed = 0;
  let sum = 0;
  let count = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < written.length && (answered > 0 || failed < mostInVain); i = next++) {
      const { logprobs } = written[i]!;
      const before = await wouldHave(behind, written[i]!, signal);
      if (before === null) {
        failed++;
        continue;
      }
      answered++;
      for (const [t, own] of logprobs.entries()) sum += own - before[t]!; // k1 of train/kl.ts
      count += logprobs.length;
    }
  };
  await Promise.all(Array.from({ length: Math.min(behind.concurrency, written.length) }, worker));
  return count === 0 || 2 * answered < written.length ? null : sum / count;
}

/** A line or two for each token. */
const mostBytes = 64 * 1024 * 1024;

/** The logprobs that the release gives a completion which another wrote. */
async function wouldHave(
  { url, key, agent, release, timeoutSeconds }: Behind,
  { prompt, completion }: WrittenTokens,
  signal: AbortSignal | undefined,
): Promise<number[] | null> {
  const late = AbortSignal.timeout(timeoutSeconds * 1000);
  try {
    const response = await fetch(`${url}/v1/completions`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...{ 'x-pawl-release': release, 'x-pawl-origin': 'evaluation' },
      },
      body: JSON.stringify({ model: agent, prompt: [...prompt, ...completion], max_tokens: 1, prompt_logprobs: 0 }),
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    const sent = await upTo(mostBytes, response.body);
    if (!response.ok || sent === null) return null;
    type Told = { choices?: { prompt_logprobs?: (Record<string, { logprob?: unknown }> | null)[] }[] };
    const told = ((parseUntrusted(sent.toString('utf8')) ?? {}) as Told).choices?.[0]?.prompt_logprobs;
    const known = completion.map((id, t) => told?.[prompt.length + t]?.[id]?.logprob);
    return known.every((one) => typeof one === 'number') ? known : null;
  } catch {
    signal?.throwIfAborted();
    return null;
  }
}
