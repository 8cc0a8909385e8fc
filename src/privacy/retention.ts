/**
 * Forgets what is older than is kept, and what was trained on long ago: whole days of conversations with what hangs on them, and datasets. A worker does it once a
 * day (roles/jobs.ts), people with `pawl retention run`. Interrupted, the next run does the rest.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../deploy/audit.ts';
import { retireDataset } from '../store/datasets.ts';
import { readJobs } from '../store/jobs.ts';
import { heldFrom } from '../store/legal-holds.ts';
import { dropPartitions, partitionDays } from '../store/partitions.ts';
import type { Store } from '../store/postgres.ts';
import { beginRetention, countOld, endRetention, forgetsFrom, oldDatasets } from '../store/retention.ts';
import { daysTrainedBefore } from '../store/trained-days.ts';
import { alone } from './alone.ts';
import { cleanHome } from './clean-home.ts';
import { type Limits, limitsAt, type RetentionSettings } from './retention-settings.ts';

export type RetentionResult = {
  readonly before: Limits;
  /** Days that were dropped whole. */
  readonly days: readonly string[];
  readonly conversations: number;
  readonly turns: number;
  readonly siblings: number;
  readonly signals: number;
  readonly keys: number;
  readonly scores: number;
  /** Ids. */
  readonly datasets: readonly string[];
};

export type RetentionRun = {
  readonly id: number;
  readonly at: number; // ms since epoch
  readonly actor: string;
  readonly settings: RetentionSettings;
  /** null: under way, or interrupted. */
  readonly result: RetentionResult | null;
  readonly finishedAt: number | null;
};

/** Under which name, and how often, a worker does it. */
export const retentionJob = 'retention';
export const retentionEveryMs = 86_400_000;

const nothing = { conversations: 0, turns: 0, siblings: 0, signals: 0, keys: 0, scores: 0 };

/** What a run would remove. */
export async function surveyRetention(
  store: Store,
  settings: RetentionSettings,
  now: number,
): Promise<RetentionResult> {
  const held = await heldFrom(store);
  const before = withHolds(limitsAt(settings, now), held);
  const old = await oldDays(store, before, held);
  const [made, trained] = [before.datasets, before.trained].map((at) => (at === null ? null : new Date(at)));
  return {
    before,
    days: old,
    ...(old.length === 0 && before.day === null
      ? nothing
      : await countOld(store, { before: before.day, days: learnedDays(before, old) })),
    datasets: await oldDatasets(store, { made: made ?? null, trained: trained ?? null }),
  };
}

/** The days that go whole: by their age, or because something of them was trained on long ago. */
async function oldDays(store: Store, { day, trained }: Limits, held: string | null): Promise<string[]> {
  const learned = new Set(trained === null ? [] : await daysTrainedBefore(store, new Date(trained)));
  const isOld = (one: string) => (day !== null && one < day) || (learned.has(one) && (held === null || one < held));
  return (await partitionDays(store)).filter(isOld);
}

/** Of the days that go, those that are younger than others that stay. */
export const learnedDays = ({ day }: Limits, days: readonly string[]): string[] =>
  days.filter((one) => day === null || one >= day);

/** While somebody's words are held, everything from their first day on stays: days go whole. */
const withHolds = (limits: Limits, from: string | null): Limits =>
  limits.day !== null && from !== null && from < limits.day ? { ...limits, day: from } : limits;

export type RetentionOptions = {
  readonly artifacts: Artifacts;
  readonly settings: RetentionSettings;
  readonly now: number;
  readonly actor: string;
  readonly onProgress?: (what: string) => void;
};

/** Null: another process is at it. */
export async function runRetention(store: Store, options: RetentionOptions): Promise<RetentionRun | null> {
  const turn = await alone(store, 'retention', () => forget(store, options));
  return turn?.done ?? null;
}

/** When a worker does it next: a day after the last time, not in the first week; null: once there is one. */
export async function nextRetention(store: Store): Promise<number | null> {
  const last = (await readJobs(store)).get(retentionJob)?.endedAt?.getTime();
  const next = Math.max(await forgetsFrom(store), last === undefined ? 0 : last + retentionEveryMs);
  return Number.isFinite(next) ? next : null;
}

async function forget(
  store: Store,
  { artifacts, settings, now, actor, onProgress = () => {} }: RetentionOptions,
): Promise<RetentionRun> {
  const id = await beginRetention(store, { at: now, actor, settings });
  onProgress('counting what is old');
  const result = await surveyRetention(store, settings, now);
  const { day } = result.before;
  if (day !== null || result.days.length > 0) {
    onProgress(`dropping ${result.days.length} days`);
    await dropPartitions(store, { before: day, days: learnedDays(result.before, result.days) });
  }
  for (const dataset of result.datasets) {
    onProgress(`dataset ${dataset}`);
    const because = `datasets are kept for ${settings.datasets ?? 'any number of'} days (\`retention.datasets\`), and for ${settings.afterTraining ?? 'any number of'} after they were trained on (\`retention.afterTraining\`)`;
    await store.db.transaction().execute((db) => retireDataset(db, dataset, { because, replacedBy: null }));
  }
  await cleanHome(store, artifacts, day === null ? 0 : Date.parse(day));
  await store.db.transaction().execute(async (db) => {
    await endRetention(db, id, result);
    const { before, days, datasets, ...counts } = result;
    const removed = days.length + datasets.length + Object.values(counts).reduce((sum, n) => sum + n, 0);
    if (removed === 0) return;
    const details = { ...before, days: days.length, ...counts, datasets };
    await audit(db, { agent: '*', actor, event: 'retention-run', subject: `retention-${id}`, details, at: now });
  });
  return { id, at: now, actor, settings, result, finishedAt: Date.now() };
}
