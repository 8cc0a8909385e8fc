/** The latest step of every run that was under way in the last hour, for /metrics. */
import { toPrometheus } from './metrics.ts';
import type { RunStore } from './run-record.ts';

const recentMs = 3_600_000;

export async function scrapeRuns(store: RunStore, now: number): Promise<string> {
  const runs = (await store.list(20)).filter(({ heartbeatAt }) => now - heartbeatAt < recentMs);
  const latest = await Promise.all(
    runs.map(async ({ id, step }) => ({ id, last: (await store.metrics(id, Math.max(0, step - 1))).at(-1) })),
  );
  const known = latest.flatMap(({ id, last }) => (last === undefined ? [] : [{ id, last }]));
  return known.length === 0 ? '' : toPrometheus(known);
}
