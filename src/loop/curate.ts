/** Curate: what of the window may and should be learned from. Nothing at all, and what is not ready, is told with its reasons. */
import { settledPii } from '../collect/redact/settings.ts';
import { datasetFacts } from '../curate/check.ts';
import { nothingKept } from '../curate/nothing-kept.ts';
import { conditionsOf, unready } from '../curate/prerequisites.ts';
import { curateWindow } from '../curate/run.ts';
import { ignoredBy } from '../train/setting-use.ts';
import type { Step } from './parts.ts';

export const curate: Step = async ({ store, artifacts, agent }, { seed, state }) => {
  const { since, until } = state.collect!;
  const dataset = await curateWindow(store, artifacts, {
    ...{ agent: agent.name, spec: agent.reward, settings: agent.curate, seed, now: new Date() },
    pii: settledPii(agent.pii),
    ...{ since: new Date(since), until: new Date(until) },
  });
  const { id, rows, pairs } = dataset;
  const funnel = dataset.funnel.map(({ gate, entered, passed }) => ({ gate, entered, passed }));
  const kept = { dataset: id, rows, pairs: pairs.rows, funnel };
  if (rows + pairs.rows === 0) return { curate: { ...kept, nothing: nothingKept(dataset.funnel).join('\n') } };
  const { recipe, without } = agent.train;
  if (recipe !== 'auto' && ignoredBy(recipe, { dataset: id }).includes('dataset')) return { curate: kept };
  const conditions = conditionsOf(await datasetFacts(store, artifacts, dataset, agent.curate), agent.curate.require);
  const why = unready(id, conditions, without);
  return { curate: { ...kept, ...(why !== null && { unready: why }) } };
};
