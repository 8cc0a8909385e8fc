/** Curate: what of the window may and should be learned from. Nothing at all, and what is not ready, is told with its reasons. */
import { settledPii } from '../collect/redact/settings.ts';
import { datasetFacts } from '../curate/check.ts';
import { NothingKept, nothingKept } from '../curate/nothing-kept.ts';
import { conditionsOf, unready } from '../curate/prerequisites.ts';
import { curateWindow } from '../curate/run.ts';
import { ignoredBy } from '../train/setting-use.ts';
import type { Step } from './parts.ts';

export const curate: Step = async ({ store, artifacts, agent }, { seed, state }) => {
  const { since, until } = state.collect!;
  const made = await curateWindow(store, artifacts, {
    ...{ agent: agent.name, spec: agent.reward, settings: agent.curate, seed, now: new Date() },
    pii: settledPii(agent.pii),
    ...{ since: new Date(since), until: new Date(until), refuseEmpty: true },
  }).catch((error: unknown) => {
    if (error instanceof NothingKept) return error;
    throw error;
  });
  const funnel = made.funnel.map(({ gate, entered, passed }) => ({ gate, entered, passed }));
  if (made instanceof NothingKept) return { curate: { rows: 0, funnel, nothing: nothingKept(made.funnel).join('\n') } };
  const { id, rows, pairs } = made;
  const kept = { dataset: id, rows, pairs: pairs.rows, funnel };
  const { recipe, without } = agent.train;
  if (recipe !== 'auto' && ignoredBy(recipe, { dataset: id }).includes('dataset')) return { curate: kept };
  const conditions = conditionsOf(await datasetFacts(store, artifacts, made, agent), agent.curate.require);
  const why = unready(id, conditions, without);
  return { curate: { ...kept, ...(why !== null && { unready: why }) } };
};
