/**
 * A judge's criteria made better from a few labels (S11): the judge itself proposes other criteria from where it and people disagree
 * most, each is tried on one half of the labels, and the best of them is kept only if it agrees more than the criteria it began with on
 * the other half, which no proposal has seen. Agreement is 1 less the mean distance of score and label: with ten labels ranks say
 * little. Whoever asks is passed in, so this file decides and does nothing else.
 */
import { z } from 'zod';
import type { Ask } from './ask.ts';
import { shuffled } from './resample.ts';
import type { Measured } from './scorer.ts';

export type Labelled<T> = { readonly item: T; readonly label: number };
export type Tried = { readonly criteria: string; readonly learned: number | null; readonly heldOut: number | null };

export type Refinement = {
  readonly labels: number;
  readonly before: Tried;
  /** The best on the half that proposals were made from; null: none was better there. */
  readonly best: Tried | null;
  /** The criteria to use from now on; null: those it began with. */
  readonly kept: string | null;
  readonly tried: readonly Tried[];
};

export const fewestLabels = 10;
/** Less may be one label. */
const leastGain = 0.01;

export type RefineParts<T> = {
  readonly labelled: readonly Labelled<T>[];
  readonly criteria: string;
  readonly variants: number;
  readonly seed?: number;
  /** Null: it cannot tell. */
  judge(criteria: string, item: T): Promise<Pick<Measured, 'value' | 'reason'>>;
  propose(k: number, criteria: string, mistakes: readonly Mistake<T>[]): Promise<string>;
};
export type Mistake<T> = Labelled<T> & { readonly score: number; readonly reason: string };

export async function refineJudge<T>(parts: RefineParts<T>): Promise<Refinement> {
  const { labelled, criteria, variants, seed = 1, judge, propose } = parts;
  const order = shuffled(labelled, seed);
  const half = Math.ceil(order.length / 2);
  const [learn, rest] = [order.slice(0, half), order.slice(half)];
  const verdicts = async (which: string, of: readonly Labelled<T>[]): Promise<Mistake<T>[]> => {
    const told = await Promise.all(of.map(async (one) => ({ ...one, ...(await judge(which, one.item)) })));
    return told.flatMap(({ value, ...one }) => (value === null ? [] : [{ ...one, score: value }]));
  };
  const agreement = (told: readonly Mistake<T>[]): number | null =>
    told.length === 0
      ? null
      : 1 - told.reduce((sum, { score, label }) => sum + Math.abs(score - label), 0) / told.length;

  const first = await verdicts(criteria, learn);
  const before = { criteria, learned: agreement(first), heldOut: agreement(await verdicts(criteria, rest)) };
  const mistakes = [...first].sort((a, b) => Math.abs(b.score - b.label) - Math.abs(a.score - a.label)).slice(0, 5);
  const tried: Tried[] = [];
  for (let k = 0; k < variants; k++) {
    const proposed = await propose(k, criteria, mistakes);
    if (proposed.trim() === '' || [criteria, ...tried.map((one) => one.criteria)].includes(proposed)) continue;
    tried.push({ criteria: proposed, learned: agreement(await verdicts(proposed, learn)), heldOut: null });
  }
  const ranked = [...tried].sort((a, b) => (b.learned ?? -1) - (a.learned ?? -1));
  const winner = ranked[0];
  if (!winner || before.learned === null || (winner.learned ?? -1) <= before.learned)
    return { labels: order.length, before, best: null, kept: null, tried };
  // Only one is shown the other half: the best of several there would be the luckiest.
  const best = { ...winner, heldOut: agreement(await verdicts(winner.criteria, rest)) };
  const better = before.heldOut !== null && best.heldOut !== null && best.heldOut >= before.heldOut + leastGain;
  return { labels: order.length, before, best, kept: better ? best.criteria : null, tried };
}

const answer = z.strictObject({ criteria: z.array(z.string().min(1).max(400)).min(1).max(8) });

const task = (criteria: string, k: number): string => `A judge scores conversations from 0 to 1 by these criteria:

${criteria}

Below are conversations on which people disagree with it, each with the score people gave, the judge's score and its reasoning. Write better criteria, one to eight, each in at most two sentences, so that a judge who follows them would give the scores that people gave. Say what people care about in general; do not mention these conversations or anybody in them. This is proposal ${k + 1}: make it differ from what others would write.`;

/** Asks the judge itself. A proposal is kept like a verdict, so that the same question is not paid for twice. */
export async function askForCriteria(
  ask: Ask,
  k: number,
  criteria: string,
  mistakes: readonly {
    readonly text: string;
    readonly label: number;
    readonly score: number;
    readonly reason: string;
  }[],
): Promise<string> {
  const material = mistakes.map(({ text, label, score, reason }, i) => ({
    name: `conversation ${i + 1}`,
    text: `people: ${label.toFixed(2)}\njudge: ${score.toFixed(2)}, because ${reason}\n${text.slice(0, 8000)}`,
  }));
  const content = [criteria, String(k), ...material.map(({ text }) => text)];
  const { details = [] } = await ask({ prompt: 'refine 1', content, calls: 1 }, async (call) => {
    const proposed = await call({ task: task(criteria, k), material, answer });
    return {
      ...{ value: 1, reason: 'proposed criteria' },
      details: proposed.criteria.map((text, i) => ({ name: `criterion ${i + 1}`, value: 1, reason: text })),
    };
  });
  return details.map(({ reason }) => reason).join('\n');
}
