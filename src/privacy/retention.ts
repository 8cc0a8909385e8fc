/**
 * Forgets what is older than is kept: whole days of conversations with what hangs on them, and datasets. A worker does it once a
 * day (roles/jobs.ts), people with `pawl retention run`. Interrupted, the next run does the rest.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { audit } from '../deploy/audit.ts';
import { retireDataset } from '../store/datasets.ts';
import { readJobs } from '../store/jobs.ts';
import { heldFrom } from '../store/legal-holds.ts';
import { dropPartitionsBefore, partitionDays } from '../store/partitions.ts';
import type { Store } from '../store/postgres.ts';
import { beginRetention, countBefore, datasetsBefore, endRetention, forgetsFrom } from '../store/retention.ts';
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
  const before = withHolds(limitsAt(settings, now), await heldFrom(store));
  const { day } = before;
  return {
    before,
    days: day === null ? [] : (await partitionDays(store)).filter((one) => one < day),
    ...(day === null ? nothing : await countBefore(store, day)),
    datasets: before.datasets === null ? [] : await datasetsBefore(store, new Date(before.datasets)),
  };
}

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
  if (day !== null) {
    onProgress(`dropping ${result.days.length} days before ${day}`);
    await dropPartitionsBefore(store, day);
  }
  for (const dataset of result.datasets) {
    onProgress(`dataset ${dataset}`);
    const because = `datasets are kept for ${settings.datasets} days (\`retention.datasets\`)`;
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
