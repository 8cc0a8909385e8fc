/** Reads what the pure files of trust need, and keeps what they found: the edge between `pawl reward`, /api, the worker and the store. */
import type { Agent } from '../agent.ts';
import { countedFigure } from '../store/figures.ts';
import { type PartWeek, readBothScores, readJudged, readPartWeeks, saveRewardCheck } from '../store/judged.ts';
import { listLabels } from '../store/labels.ts';
import { dayOf } from '../store/partitions.ts';
import type { Store } from '../store/postgres.ts';
import { type Trust, trustOf } from './agreement.ts';
import { type Comparison, compareRewards } from './compare-rewards.ts';
import { type Drift, driftOf } from './drift.ts';
import { type Proposal, proposeWeights } from './propose.ts';
import { repeatsLabels } from './weighted.ts';

export type RewardCheck = Trust & {
  readonly agent: string;
  readonly spec: string;
  readonly at: number;
  readonly drift: readonly Drift[];
};

type Rewarded = Pick<Agent, 'name' | 'reward' | 'curate'>;

export const driftWeeks = 4;

/** Of everything as it is now. */
export async function checkReward(store: Store, agent: Rewarded, now: Date): Promise<RewardCheck> {
  return checked(store, agent, now, await weeksOf(store, agent, now));
}

/** With the weeks of its parts as they were counted last, where there is much to count. */
export async function lookAtReward(
  store: Store,
  agent: Rewarded,
  now: Date,
  options?: { readonly isPatient?: boolean },
): Promise<RewardCheck & { readonly countedAt: Date }> {
  const { name, reward } = agent;
  const figure = { agent: name, name: 'weeks of parts', of: reward.version };
  const { value, countedAt } = await countedFigure(store, figure, () => weeksOf(store, agent, now), options);
  return { ...(await checked(store, agent, now, value)), countedAt };
}

const weeksOf = (store: Store, { name, reward }: Rewarded, now: Date): Promise<PartWeek[]> =>
  readPartWeeks(store, { agent: name, spec: reward.version, until: dayOf(now), weeks: driftWeeks });

async function checked(store: Store, agent: Rewarded, now: Date, weeks: readonly PartWeek[]): Promise<RewardCheck> {
  const { name, reward } = agent;
  const about = { agent: name, spec: reward.version };
  const judged = await readJudged(store, { ...about, by: { kind: 'labels' } });
  // A part that is the label itself agrees with it, which says nothing.
  const own = reward.parts.filter(repeatsLabels).map((part) => part.name);
  const names = reward.parts.map((part) => part.name).filter((part) => !own.includes(part));
  const trust = trustOf(judged, names);
  const drift = driftOf(weeks, driftWeeks);
  const total = own.length > 0 ? { ...trust.total, state: 'unmeasured' as const } : trust.total;
  const check = { ...about, at: now.getTime(), ...trust, total, drift };
  await saveRewardCheck(store, { ...about, at: now, result: { total, parts: trust.parts, drift } });
  return check;
}

/** From labels, or from the outcome of a name. */
export async function fitReward(store: Store, agent: Rewarded, outcome: string | undefined): Promise<Proposal> {
  const { name, reward, curate } = agent;
  const by = outcome === undefined ? { kind: 'labels' as const } : { kind: 'outcome' as const, name: outcome };
  const judged = await readJudged(store, { agent: name, spec: reward.version, by });
  const labelled = new Set(reward.parts.filter(repeatsLabels).map(({ scorer }) => scorer.name));
  const isTarget = (scorer: string) =>
    outcome === undefined ? labelled.has(scorer) : scorer.startsWith('outcome') && scorer.split(' ').includes(outcome);
  return proposeWeights(judged, reward, { isTarget, minScore: curate.minScore });
}

export async function compareStored(
  store: Store,
  { name: agent, curate }: Rewarded,
  { a, b, since, until, most = 100_000 }: { a: string; b: string; since: Date; until: Date; most?: number },
): Promise<Comparison> {
  const both = await readBothScores(store, { agent, a, b, from: dayOf(since), to: dayOf(until), most });
  const said = new Map<string, number[]>();
  for (const { target, score } of await listLabels(store, { agent, limit: 20_000 }))
    if (target.kind === 'trajectory') said.set(target.id, [...(said.get(target.id) ?? []), score]);
  const labels = new Map(
    [...said].map(([id, scores]) => [id, scores.reduce((sum, one) => sum + one, 0) / scores.length]),
  );
  return compareRewards(both, { minScore: curate.minScore, labels });
}
