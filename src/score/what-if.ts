/** What other weights would do to the newest scores: how they would be spread, and what would be good enough. Changes nothing. */
import { RequestError } from '../errors.ts';
import { dayOf } from '../store/partitions.ts';
import type { Store } from '../store/postgres.ts';
import { type SampledScore, sampleScores } from '../store/score-sample.ts';
import { type Kept, keptBy, reweighed, type Spread, spreadOf } from './distribution.ts';
import type { RewardSpec } from './weighted.ts';

/** The newest, so many: as many as a page can weigh while somebody moves a slider. */
export const mostScores = 2_000;

const pair = '[a-z][a-z0-9_-]{0,63}:\\d{1,6}(\\.\\d{1,9})?';
export const weightsPattern = new RegExp(`^${pair}(,${pair})*$`);
export const weightsHint = 'parts and weights such as resolved:0.5,tools:0.3; 0 leaves a part out';
export type Weights = Readonly<Record<string, number>>;

/** Of a text that fits the pattern. */
export const readWeights = (text: string): Weights => {
  const pairs = text.split(',').map((one) => one.split(':') as [string, string]);
  return Object.assign(Object.create(null), Object.fromEntries(pairs.map(([name, n]) => [name, Number(n)])));
};

type Window = { readonly since: Date; readonly until: Date };
type Whose = { readonly name: string; readonly reward: RewardSpec; readonly curate: { readonly minScore: number } };

export const newestScores = (
  store: Store,
  { name, reward }: Pick<Whose, 'name' | 'reward'>,
  { since, until }: Window,
): Promise<SampledScore[]> =>
  sampleScores(store, {
    ...{ agent: name, spec: reward.version, since: dayOf(since), until: dayOf(until), most: mostScores },
  });

type Side = Pick<Spread, 'mean' | 'bins'>;
export type WhatIf = {
  readonly agent: string;
  readonly spec: string;
  readonly sample: number;
  readonly minScore: number;
  readonly current: Side;
  readonly proposed: Side;
  readonly kept: Kept;
};

export async function whatIf(store: Store, agent: Whose, weights: Weights, window: Window): Promise<WhatIf> {
  const { name, reward, curate } = agent;
  const parts = reward.parts.map((part) => part.name);
  const unknown = Object.keys(weights).find((one) => !parts.includes(one));
  if (unknown !== undefined)
    throw new RequestError(
      400,
      'invalid_request',
      `The reward of ${name} has no part '${unknown}'; it has ${parts.join(', ')}.`,
    );
  const scores = await newestScores(store, agent, window);
  const pairs = scores.map(({ total, parts }) => [total, total === null ? null : reweighed(parts, weights)] as const);
  const sideOf = (values: readonly (number | null)[]): Side => {
    const { mean, bins } = spreadOf(values);
    return { mean, bins };
  };
  return {
    ...{ agent: name, spec: reward.version, sample: scores.length, minScore: curate.minScore },
    current: sideOf(pairs.map(([current]) => current)),
    proposed: sideOf(pairs.map(([, proposed]) => proposed)),
    kept: keptBy(pairs, curate.minScore),
  };
}
