/** Reads what there is to learn from of an agent: counts of its traffic, and its newest dataset as far as it may be learned from. */
import type { Agent } from '../agent.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { PairSource } from '../curate/pair.ts';
import { datasetReader } from '../curate/read.ts';
import type { Settings } from '../curate/settings.ts';
import { readDataset } from '../store/datasets.ts';
import { countEvidence } from '../store/evidence.ts';
import { countedFigure } from '../store/figures.ts';
import type { Store } from '../store/postgres.ts';
import type { StoredFacts } from './advise-stored.ts';
import { baseOf } from './begin.ts';
import { sftDefaults } from './sft.ts';

type OfAgent = {
  readonly name: string;
  readonly reward: { readonly version: string };
  readonly curate: Settings;
  readonly train: Agent['train'];
  readonly environment?: unknown;
};

/** As they were counted last, where there is much to count: for a page. A run is begun on what is there. */
export async function lookAtStoredFacts(
  store: Store,
  artifacts: Artifacts,
  agent: OfAgent,
  options?: { readonly isPatient?: boolean },
): Promise<StoredFacts & { readonly countedAt: Date }> {
  const { name, environment } = agent;
  const of = evidenceOf(agent);
  const words = `${of.origin} ${of.spec} ${of.minScore} ${of.minMeasured}`;
  const newest = (await readDataset(store, { agent: name }))?.id;
  const stored = await countedFigure(
    store,
    { agent: name, name: 'evidence', of: words },
    () => countEvidence(store, of),
    options,
  );
  const dataset =
    newest === undefined
      ? null
      : await countedFigure(
          store,
          { agent: name, name: 'dataset', of: newest },
          () => countDataset(newest, datasetReader(store, artifacts)),
          options,
        );
  return {
    ...{ agent: name, stored: stored.value, dataset: dataset?.value ?? null, environment: environment !== undefined },
    base: await baseOf(store, agent),
    countedAt: new Date(Math.min(+stored.countedAt, +(dataset?.countedAt ?? stored.countedAt))),
  };
}

const evidenceOf = ({ name: agent, reward, curate }: OfAgent) => {
  const { on: origin, minScore, minMeasured } = curate;
  return { agent, origin, spec: reward.version, minScore, minMeasured };
};

export async function readStoredFacts(
  store: Store,
  artifacts: Artifacts,
  agent: OfAgent,
  dataset?: string,
): Promise<StoredFacts> {
  const { name, environment } = agent;
  const newest = dataset ?? (await readDataset(store, { agent: name }))?.id;
  return {
    agent: name,
    stored: await countEvidence(store, evidenceOf(agent)),
    dataset: newest === undefined ? null : await countDataset(newest, datasetReader(store, artifacts)),
    environment: environment !== undefined,
    base: await baseOf(store, agent),
  };
}

async function countDataset(
  id: string,
  reader: ReturnType<typeof datasetReader>,
): Promise<NonNullable<StoredFacts['dataset']>> {
  const pairs: Partial<Record<PairSource, number>> = {};
  let examples = 0;
  for await (const { quality } of reader.examples(id)) if (quality >= sftDefaults.minQuality) examples++;
  for await (const { source } of reader.pairs(id)) pairs[source] = (pairs[source] ?? 0) + 1;
  return { id, examples, pairs };
}
