/** What other weights would do to the newest scores: how they would be spread, and what could be learned from. */
import { dayOf } from '../store/partitions.ts';
import type { Store } from '../store/postgres.ts';
import { sampleScores } from '../store/score-sample.ts';
import { type Kept, keptBy, reweighed, type Spread, spreadOf } from './distribution.ts';

/** Conversations it is of: the newest. */
export const mostSampled = 2_000;

type OfAgent = {
  readonly name: string;
  readonly reward: { readonly version: string };
  readonly curate: { readonly minScore: number };
};

export type WhatIf = {
  readonly sample: number;
  readonly minScore: number;
  readonly current: Spread;
  readonly proposed: Spread;
  readonly kept: Kept;
};

/** A part that is not named keeps its weight, one with 0 is left out. */
export async function whatIf(
  store: Store,
  { name, reward, curate: { minScore } }: OfAgent,
  weights: Readonly<Record<string, number>>,
  { since, until }: { readonly since: Date; readonly until: Date },
): Promise<WhatIf> {
  const of = { agent: name, spec: reward.version, since: dayOf(since), until: dayOf(until), most: mostSampled };
  const scores = await sampleScores(store, of);
  const pairs = scores.map(({ total, parts }) => [total, total === null ? null : reweighed(parts, weights)] as const);
  return {
    ...{ sample: scores.length, minScore, kept: keptBy(pairs, minScore) },
    current: spreadOf(pairs.map(([current]) => current)),
    proposed: spreadOf(pairs.map(([, proposed]) => proposed)),
  };
}

/** Parts and weights as people type them, such as resolved:0.5,tools:0.3; null: they are not of that form. */
export function weightsFrom(text: string): Readonly<Record<string, number>> | null {
  const one = /^[a-z][a-z0-9_-]{0,63}:\d{1,6}(\.\d{1,9})?$/;
  const pairs = text.split(',');
  if (!pairs.every((pair) => one.test(pair))) return null;
  return Object.assign(
    Object.create(null),
    Object.fromEntries(
      pairs.map((pair) => {
        const [name, weight] = pair.split(':');
        return [name, Number(weight)];
      }),
    ),
  );
}
