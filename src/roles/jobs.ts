/**
 * What a worker does now and then: a job is one line here. It runs once over all processes each time it is due, may be killed
 * at any point, and is run again when it was.
 */
import type { Logger } from 'pino';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Config } from '../config.ts';
import { lookAtShifts } from '../curate/check.ts';
import { carryOutErasures } from '../privacy/erase.ts';
import { retentionEveryMs, retentionJob, runRetention } from '../privacy/retention.ts';
import { pickWindow } from '../review/queue.ts';
import { checkReward, lookAtReward } from '../score/check-reward.ts';
import { dropOldFigures, keepsFigures } from '../store/figures.ts';
import { lookAtSpecs } from '../store/judged.ts';
import { listLabels } from '../store/labels.ts';
import { scanning } from '../store/limits.ts';
import { daysAhead, ensurePartitions } from '../store/partitions.ts';
import type { Store } from '../store/postgres.ts';
import { forgetsFrom } from '../store/retention.ts';
import { sweepUnmatched } from '../store/unmatched.ts';
import { lookAtVerdicts } from '../store/verdicts.ts';
import { lookAtStoredFacts } from '../train/stored-facts.ts';

export type JobParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: Config;
  readonly log: Logger;
  /** The process is ending, or no longer the one that does this. */
  readonly signal: AbortSignal;
};

export type Job = {
  readonly name: string;
  readonly everyMs: number;
  readonly run: (parts: JobParts) => Promise<unknown>;
};

const hour = 3_600_000;

/** Whole days are read and removed: longer than a job's statements usually may take. */
const patiently = async (parts: JobParts, work: (parts: JobParts) => Promise<unknown>): Promise<void> => {
  const store = parts.store.within(scanning, 3);
  try {
    await work({ ...parts, store });
  } finally {
    await store.close();
  }
};

const goOnErasing = ({ store, artifacts, signal }: JobParts) => carryOutErasures(store, { artifacts, signal });

async function retentionWhenDue({ store, artifacts, config, log }: JobParts): Promise<void> {
  const now = Date.now();
  if (now < (await forgetsFrom(store))) return;
  const { retention: settings } = config;
  const { result } = (await runRetention(store, { artifacts, settings, now, actor: 'pawl' })) ?? {};
  if (result && result.days.length > 0)
    log.info(`forgot ${result.conversations} conversations from before ${result.before.day} (docs/privacy.md)`);
}

/** Keeps what /metrics and `pawl doctor` say of every agent's reward; one that nobody labelled has nothing to say. */
async function checkRewards({ store, config, signal }: JobParts): Promise<void> {
  for (const agent of config.agents) {
    signal.throwIfAborted();
    if ((await listLabels(store, { agent: agent.name, limit: 1 })).length > 0)
      await checkReward(store, agent, new Date());
  }
}

const week = 7 * 24 * hour;

async function pickReviews({ store, config, signal }: JobParts): Promise<void> {
  const until = new Date();
  for (const agent of config.agents) {
    signal.throwIfAborted();
    if (agent.review.share > 0)
      await pickWindow(store, agent, { since: new Date(until.getTime() - week), until }, until);
  }
}

/** So that a page shows what is of today where nobody has looked for long; with little stored, nothing is kept. */
async function countFigures({ store, artifacts, config, signal }: JobParts): Promise<void> {
  const patient = { isPatient: true };
  await dropOldFigures(store);
  if (!(await keepsFigures(store))) return;
  await lookAtVerdicts(store, patient);
  for (const agent of config.agents) {
    const { name, reward, curate } = agent;
    const until = new Date();
    const since = new Date(until.getTime() - week);
    for (const count of [
      () => lookAtStoredFacts(store, artifacts, agent, patient),
      () => lookAtShifts(store, { agent: name, spec: reward.version, origin: curate.on, since, until }, patient),
      () => lookAtReward(store, agent, until, patient),
      () => lookAtSpecs(store, name, patient),
    ]) {
      signal.throwIfAborted();
      await count();
    }
  }
}

export const jobs: readonly Job[] = [
  { name: 'partitions', everyMs: hour, run: ({ store }) => ensurePartitions(store, daysAhead(Date.now())) },
  { name: 'unmatched', everyMs: hour, run: ({ store }) => sweepUnmatched(store, new Date()) },
  { name: 'trust', everyMs: hour, run: (parts) => patiently(parts, checkRewards) },
  { name: 'figures', everyMs: hour, run: (parts) => patiently(parts, countFigures) },
  { name: 'review', everyMs: week, run: (parts) => patiently(parts, pickReviews) },
  { name: 'erasures', everyMs: 5_000, run: (parts) => patiently(parts, goOnErasing) },
  { name: retentionJob, everyMs: retentionEveryMs, run: (parts) => patiently(parts, retentionWhenDue) },
];
