/**
 * A pair: two answers to the same question, one better than the other. The record, and how pairs are found among answers.
 *
 * question   the messages a model was given and the tools it was offered; `group` is their hash, so that all answers to one
 *            question can be found together
 * source     why one is better: `correction` (somebody wrote what the answer should have been), `votes` (users said so of
 *            answers in conversations of their own), `exploration` (further answers to one turn, told apart by the reward)
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { PartScore } from '../score/score.ts';
import { type Asked, assistantMessage, message, rowTool } from './row.ts';

export const pairSources = ['correction', 'votes', 'exploration'] as const;
export type PairSource = (typeof pairSources)[number];

/** The recorded turn, or the answer beside it, that a side is. A correction is a signal's. */
const from = z.union([
  z.strictObject({ trajectory: z.string(), day: z.iso.date(), answer: z.string() }),
  z.strictObject({ signal: z.string(), identity: z.string() }),
]);
const side = z.strictObject({ message: assistantMessage, reasoning: z.string().exactOptional(), from });
export type PairSide = z.infer<typeof side>;

export const pair = z.strictObject({
  source: z.enum(pairSources),
  group: z.string(),
  taskType: z.string().nullable(),
  /** How much better, 0–1. */
  gap: z.number().min(0).max(1),
  prompt: z.array(message).min(1),
  tools: z.array(rowTool),
  chosen: side,
  rejected: side,
});
export type PairRow = z.infer<typeof pair>;

/** The same for the same messages and tools. */
export const groupOf = ({ said, tools }: Pick<Asked, 'said' | 'tools'>): string =>
  createHash('sha256')
    .update(JSON.stringify([said.slice(0, -1), tools]))
    .digest('hex')
    .slice(0, 32);

/** An answer that can be told from others to the same question. */
export type Answer = {
  readonly id: string;
  readonly group: string;
  /** The answer's words, in one form. */
  readonly said: string;
  /** 0–1: what users said of it; null: nothing. */
  readonly vote: number | null;
  /** The turn beside which it was asked for, and what the reward says of it alone; null: it is not part of an exploration. */
  readonly explored: { readonly turn: string; readonly parts: Readonly<Record<string, PartScore>> } | null;
};

export type Compared<A> = {
  readonly source: PairSource;
  readonly chosen: A;
  readonly rejected: A;
  readonly gap: number;
};
export type Uncompared<A> = { readonly answer: A; readonly reason: string };

/** Best against worst, second best against second worst, as long as they differ enough. An answer is in one pair at most. */
export function compare<A extends Answer>(
  answers: readonly A[],
  minGap: number,
): { readonly pairs: Compared<A>[]; readonly left: Uncompared<A>[] } {
  const pairs: Compared<A>[] = [];
  const left: Uncompared<A>[] = [];
  for (const group of groupBy(answers, ({ group: of }) => of)) {
    const used = new Set<A>();
    const match = (source: PairSource, of: readonly A[], gapOf: (a: A, b: A) => number | null) => {
      const free = of.filter((one) => !used.has(one));
      for (let [low, high] = [0, free.length - 1]; low < high; low++, high--) {
        const [chosen, rejected] = [free[low]!, free[high]!];
        const gap = gapOf(chosen, rejected);
        if (gap === null || gap < minGap || chosen.said === rejected.said) continue;
        pairs.push({ source, chosen, rejected, gap });
        used.add(chosen).add(rejected);
      }
    };
    const voted = group.filter(({ vote }) => vote !== null);
    match(
      'votes',
      sortedBy(voted, ({ vote }) => vote!),
      (a, b) => a.vote! - b.vote!,
    );
    const explored = group.filter((one) => one.explored !== null);
    for (const beside of groupBy(explored, (one) => one.explored!.turn))
      match(
        'exploration',
        sortedBy(beside, (one) => mean(Object.values(one.explored!.parts))),
        (a, b) => partsGap(a.explored!.parts, b.explored!.parts),
      );
    for (const answer of group)
      if (!used.has(answer))
        left.push({ answer, reason: group.length === 1 ? 'no other answer to the question' : 'no clear difference' });
  }
  return { pairs, left };
}

/** Among equals the words decide, then the id: neither order of arrival nor time has a say. */
const sortedBy = <A extends Answer>(answers: readonly A[], worth: (answer: A) => number): A[] =>
  [...answers].sort((a, b) => worth(b) - worth(a) || (`${a.said} ${a.id}` < `${b.said} ${b.id}` ? -1 : 1));

type Parts = Readonly<Record<string, PartScore>>;
const mean = (parts: readonly PartScore[]): number => {
  const known = parts.filter(({ value }) => value !== null);
  const weight = known.reduce((sum, part) => sum + part.weight, 0);
  return weight === 0 ? 0 : known.reduce((sum, part) => sum + part.weight * part.value!, 0) / weight;
};

/** Over the parts that were measured of both: a part that only one of them has says nothing about the other. */
function partsGap(a: Parts, b: Parts): number | null {
  const common = Object.keys(a).filter((name) => a[name]!.value !== null && (b[name]?.value ?? null) !== null);
  if (common.length === 0) return null;
  return mean(common.map((name) => a[name]!)) - mean(common.map((name) => b[name]!));
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const found = groups.get(key(item));
    if (found === undefined) groups.set(key(item), [item]);
    else found.push(item);
  }
  return [...groups.values()];
}
