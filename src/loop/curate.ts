/** Curate: what of the window may and should be learned from. Nothing at all is told with its reasons. */
import { nothingKept } from '../curate/nothing-kept.ts';
import { curateWindow } from '../curate/run.ts';
import type { Step } from './parts.ts';

export const curate: Step = async ({ store, home, agent }, { seed, state }) => {
  const { since, until } = state.collect!;
  const dataset = await curateWindow(store, home, {
    ...{ agent: agent.name, spec: agent.reward, settings: agent.curate, seed, now: new Date() },
    ...{ since: new Date(since), until: new Date(until) },
  });
  const { id, rows, pairs } = dataset;
  const funnel = dataset.funnel.map(({ gate, entered, passed }) => ({ gate, entered, passed }));
  const nothing = rows + pairs.rows === 0 ? { nothing: nothingKept(dataset.funnel).join('\n') } : {};
  return { curate: { dataset: id, rows, pairs: pairs.rows, funnel, ...nothing } };
};
