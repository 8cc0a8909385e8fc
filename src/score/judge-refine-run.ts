/** Reads labels and their conversations for refine-judge.ts and lets the agent's judge answer. */
import type { Agent } from '../agent.ts';
import { ConflictError } from '../errors.ts';
import { listLabels } from '../store/labels.ts';
import type { Store } from '../store/postgres.ts';
import { readTrajectory } from '../store/trajectories.ts';
import { type OpenJudgeOptions, openJudge } from './ask-open.ts';
import { judge } from './judge.ts';
import { askForCriteria, type Labelled, type Refinement, refineJudge } from './refine-judge.ts';
import { modelText } from './reward-model.ts';
import type { ScorerInput } from './scorer.ts';
import { contextOf } from './weighted.ts';

export async function judgeRefine(
  store: Store,
  agent: Agent,
  { criteria, labels, variants }: { criteria: string; labels: number; variants: number },
  options: OpenJudgeOptions = {},
): Promise<Refinement | 'no judge'> {
  const opened = openJudge(store, agent, options);
  if (opened === undefined) return 'no judge';
  const services = { judge: opened };
  const signal = new AbortController().signal; // each call has a limit of its own
  const said = new Map<string, number[]>();
  for (const { target, score } of await listLabels(store, { agent: agent.name, limit: 2000 }))
    if (target.kind === 'trajectory') said.set(target.id, [...(said.get(target.id) ?? []), score]);
  const labelled: Labelled<ScorerInput>[] = [];
  for (const [id, scores] of said) {
    if (labelled.length >= labels) break;
    const found = await readTrajectory(store, id, { agent: agent.name, maxTurns: 200 });
    if (found === null) continue;
    const { trajectory, turns, signals } = found;
    const label = scores.reduce((sum, one) => sum + one, 0) / scores.length;
    labelled.push({ item: { trajectory, turns, signals }, label });
  }
  let untold = '';
  const found = await refineJudge({
    ...{ labelled, criteria, variants },
    judge: async (which, input) => {
      const measured = await judge({ criteria: which, alsoWithFeedback: true }).score(
        input,
        contextOf(input, services, () => signal),
      );
      if (measured.value === null) untold = measured.reason;
      return measured;
    },
    propose: (k, from, mistakes) => {
      const worst = mistakes[0];
      if (worst === undefined) return Promise.resolve('');
      const { ask } = contextOf(worst.item, services, () => signal);
      const shown = mistakes.map(({ item, ...rest }) => ({ ...rest, text: modelText(item.turns) }));
      return askForCriteria(ask!, k, from, shown);
    },
  });
  if (labelled.length > 0 && found.before.learned === null && found.before.heldOut === null)
    throw new ConflictError(`The judge can tell of none of the ${labelled.length} labelled conversations: ${untold}.`);
  return found;
}
