/** The model card of a release from everything that is stored about it. */
import type { Dataset } from '../curate/dataset.ts';
import { readAudit } from '../store/audit.ts';
import { readCompatibility } from '../store/compatibility.ts';
import { readDataset } from '../store/datasets.ts';
import type { Store } from '../store/postgres.ts';
import { readRelease } from '../store/releases.ts';
import { latestReport, readReport } from '../store/reports.ts';
import { listRollouts } from '../store/rollouts.ts';
import { postgresRunStore } from '../store/runs.ts';
import { type CardParts, cardYaml, modelCard } from './card.ts';
import type { Release } from './release.ts';

export const readCard = async (store: Store, release: Release): Promise<string> =>
  modelCard(await readParts(store, release));

export const readCardYaml = async (store: Store, release: Release): Promise<string> =>
  cardYaml(await readParts(store, release));

async function readParts(store: Store, release: Release): Promise<CardParts> {
  const rollouts = await listRollouts(store, { candidate: release.id });
  const [rollout = null] = rollouts;
  const baseline = rollout === null ? null : await readRelease(store, { id: rollout.baseline });
  const reportId = rollout?.report ?? release.report;
  // A forced rollout has none; the release may have been evaluated all the same, and the card must not say that it was not.
  const report =
    (reportId === null ? null : await readReport(store, reportId)) ??
    (await latestReport(store, { agent: release.agent, candidate: release.name }));
  const run = release.run === null ? null : await postgresRunStore(store).get(release.run);
  const dataset = release.dataset === null ? null : await readDataset(store, { id: release.dataset });
  // It may have been on its way before, and whoever agreed then is on record too.
  const about = [release.id, ...rollouts.map(({ id }) => id), report?.id, release.run, release.dataset].filter(
    (id) => id != null,
  );
  const audit = (await Promise.all(about.map((subject) => readAudit(store, { subject, limit: 1000 })))).flat();
  return {
    ...{ release, baseline, run, report, rollout },
    dataset: dataset && summaryOf(dataset),
    compatibility: await readCompatibility(store, { agent: release.agent, release: release.name }),
    lineage: await parentsOf(store, release),
    audit: audit.sort((a, b) => a.n - b.n),
  };
}

const mostParents = 20;
async function parentsOf(store: Store, { parent }: Release): Promise<Release[]> {
  const found: Release[] = [];
  for (let id = parent; id !== null && found.length < mostParents; ) {
    const next: Release | null = await readRelease(store, { id });
    if (next === null || found.some((one) => one.id === next.id)) break;
    found.push(next);
    id = next.parent;
  }
  return found;
}

function summaryOf({ id, rows, funnel, settings }: Dataset): CardParts['dataset'] {
  const left = new Map<string, number>();
  for (const step of funnel)
    for (const [reason, count] of Object.entries(step.left)) left.set(reason, (left.get(reason) ?? 0) + count);
  const gates = funnel.map(({ gate, entered, passed }) => ({ gate, entered, passed }));
  return { id, trajectories: rows, left: Object.fromEntries(left), gates, kAnonymity: settings.kAnonymity ?? null };
}
