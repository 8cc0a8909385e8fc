/**
 * From turns to training data: which token predicts which, and which tokens the model wrote itself. Loss falls on those
 * only; prompts, users and tool results are context.
 *
 * When the next turn's prompt begins with everything before it (the chat template only appends), the turns share one
 * sequence, so a conversation of T turns costs T turns and not T². Otherwise a new sequence begins; sub-agents and branches of
 * one attempt are sequences of their own, each token of which is learned once. The idea is the
 * Tinker cookbook's "extension property"; here it is checked on token ids, never assumed.
 *
 *   sequence   s0 s1 s2 s3          tokens  s0 s1 s2
 *                                   targets s1 s2 s3     turns[i] = which turn wrote targets[i], −1 if nobody here did
 */
import type { Datum, PerToken, Tokens } from '../engine/engine.ts';
import type { Attempt } from './attempt.ts';

export type Sequence = {
  readonly tokens: Int32Array;
  readonly targets: Int32Array;
  /** Index of the turn that wrote each target; −1 where the model did not write it. */
  readonly turns: Int16Array;
  /** Sampled logprob of each target; 0 where the model did not write it. */
  readonly logprobs: Float32Array;
};

export type WrittenTurn = {
  readonly prompt: Tokens;
  readonly completion: Tokens;
  /** Absent for examples nobody sampled, e.g. an expert's. */
  readonly logprobs?: PerToken;
  /** What it was worth by itself, 0–1; absent where nobody says. Read where credit is per turn. */
  readonly worth?: number;
};

type Open = { readonly ids: number[]; readonly writer: number[]; readonly sampled: number[] };

export function sequences(turns: readonly WrittenTurn[]): Sequence[] {
  const open: Open[] = [];
  for (const [k, turn] of turns.entries()) {
    if (turn.prompt.length === 0)
      throw new Error(`Turn ${k} has an empty prompt, so nothing predicts its first token; begin with one token.`);
    if (turn.logprobs && turn.logprobs.length !== turn.completion.length)
      throw new Error(
        `Turn ${k} has ${turn.completion.length} tokens and ${turn.logprobs.length} logprobs; they must be the sampler's own.`,
      );
    const { ids, writer, sampled } = extended(open, turn.prompt);
    for (let i = ids.length; i < turn.prompt.length; i++) {
      ids.push(turn.prompt[i]!);
      writer.push(-1);
      sampled.push(0);
    }
    for (let i = 0; i < turn.completion.length; i++) {
      ids.push(turn.completion[i]!);
      writer.push(k);
      sampled.push(turn.logprobs?.[i] ?? 0);
    }
  }
  return open
    .filter(({ ids }) => ids.length > 1)
    .map(({ ids, writer, sampled }) => ({
      tokens: Int32Array.from(ids.slice(0, -1)),
      targets: Int32Array.from(ids.slice(1)),
      turns: Int16Array.from(writer.slice(1)),
      logprobs: Float32Array.from(sampled.slice(1)),
    }));
}

/** The longest sequence so far that the prompt begins with, or a new one. Agents that take turns each go on with their own. */
function extended(open: Open[], prompt: Tokens): Open {
  let longest: Open | null = null;
  for (const one of open) if (one.ids.length > (longest?.ids.length ?? 0) && startsWith(prompt, one.ids)) longest = one;
  if (longest !== null) return longest;
  const begun: Open = { ids: [], writer: [], sampled: [] };
  open.push(begun);
  return begun;
}

function startsWith(long: Tokens, short: readonly number[]): boolean {
  if (long.length < short.length) return false;
  for (let i = 0; i < short.length; i++) if (long[i] !== short[i]) return false;
  return true;
}

/** What the targets that the model wrote weigh together. */
export function ownWeight({ turns }: Sequence, weightOf: (turn: number) => number): number {
  let sum = 0;
  for (let i = 0; i < turns.length; i++) if (turns[i]! >= 0) sum += weightOf(turns[i]!);
  return sum;
}

/** How many targets of a sequence the model wrote. */
export const ownCount = (sequence: Sequence): number => ownWeight(sequence, () => 1);

/** A cross-entropy datum: every own token weighs what its turn does. */
export function supervisedDatum(sequence: Sequence, weightOf: (turn: number) => number): Datum {
  return {
    tokens: sequence.tokens,
    targets: sequence.targets,
    weights: Float32Array.from(sequence.turns, (turn) => (turn >= 0 ? weightOf(turn) : 0)),
  };
}

/**
 * Refuses attempts that other weights wrote than the trainer may learn from: from the future, or more than `maxLag`
 * optimizer steps old. Importance weights repair small gaps, not unknown ones.
 */
export function refuseStale(attempts: readonly Attempt[], version: number, maxLag: number): void {
  for (const attempt of attempts) {
    const lag = version - attempt.version;
    if (lag < 0 || lag > maxLag)
      throw new Error(
        `Attempt ${attempt.id} was written by weights version ${attempt.version}, the trainer holds ${version}, and ` +
          `${maxLag} steps of difference are allowed; play it again with the current weights.`,
      );
  }
}
