/** The model card of a release from everything that is stored about it. */
import type { Dataset } from '../curate/dataset.ts';
import { readAudit } from '../store/audit.ts';
import { readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease } from '../store/releases.ts';
import { readReport } from '../store/reports.ts';
import { listRollouts } from '../store/rollouts.ts';
import { postgresRunStore } from '../store/runs.ts';
import { type CardParts, modelCard } from './card.ts';
import type { Release } from './release.ts';

export async function readCard(store: Store, release: Release): Promise<string> {
  const [rollout = null] = await listRollouts(store, { candidate: release.id, limit: 1 });
  const baseline = rollout === null ? null : await readRelease(store, { id: rollout.baseline });
  const reportId = rollout?.report ?? release.report;
  const report = reportId === null ? null : await readReport(store, reportId);
  const run = release.run === null ? null : await postgresRunStore(store).get(release.run);
  const dataset = release.dataset === null ? null : await readDataset(store, { id: release.dataset });
  const about = [release.id, ...(rollout === null ? [] : [rollout.id])];
  const audit = (await Promise.all(about.map((subject) => readAudit(store, { subject, limit: 1000 })))).flat();
  return modelCard({
    ...{ release, baseline, run, report, rollout },
    dataset: dataset && summaryOf(dataset),
    audit: audit.sort((a, b) => a.n - b.n),
  });
}

function summaryOf({ id, rows, funnel }: Dataset): CardParts['dataset'] {
  const left = new Map<string, number>();
  for (const step of funnel)
    for (const [reason, count] of Object.entries(step.left)) left.set(reason, (left.get(reason) ?? 0) + count);
  return { id, trajectories: rows, left: Object.fromEntries(left) };
}
