/**
 * Train: what the agent's own good conversations and pairs show, and practice, where there is an environment. Only a finished run's
 * weights go on: one that was interrupted goes on here when the stage is entered again, and whether one that somebody paused
 * or stopped does is not decided here (next-step.ts).
 */
import { join } from 'node:path';
import { datasetReader } from '../curate/read.ts';
import { postgresRunStore } from '../store/runs.ts';
import type { StepMetrics } from '../train/metrics.ts';
import { adviceFor, planRun, settingsOf, specOf } from '../train/plan.ts';
import { exportResult, resultOf } from '../train/result.ts';
import { createRun, train as trainRun } from '../train/run.ts';
import type { Budget } from '../train/stop.ts';
import { runId, type Step, type Work } from './parts.ts';
import type { LoopTurn } from './turn.ts';

export const train: Step = async (work, turn) => {
  const { store, home, say, signal } = work;
  const runs = postgresRunStore(store);
  const id = runId(turn);
  const engine = await work.engine();
  const begun = await runs.get(id);
  if (begun === null || resultOf(begun, await runs.checkpoints(id)).kind === 'open') {
    const { plan, run } = await planTurn(work, turn);
    const shown: number[] = [];
    try {
      for await (const metrics of trainRun(id, { engine, store: runs, ...plan, model: id, signal }))
        say.progress('train', (metrics.step + 1) / run.steps, describe(metrics, shown));
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Error(
        `Run ${id} failed: ${(error as Error).message} It goes on from its newest checkpoint; to end the turn without a candidate instead: \`pawl runs stop ${id}\`.`,
        { cause: error },
      );
    }
  }
  const run = (await runs.get(id))!;
  const result = resultOf(run, await runs.checkpoints(id));
  switch (result.kind) {
    case 'finished': {
      const checkpoint = join(home, 'models', id);
      await exportResult(id, checkpoint, { store: runs, engine });
      const { recipe, step: steps } = run;
      const reasons = await whyOf(work, turn, recipe);
      return { train: { run: id, recipe, reasons, steps, tokens: run.spent.tokens, checkpoint } };
    }
    case 'held':
    case 'stopped':
      return null;
    case 'open':
      throw new Error(`Run ${id} is ${run.status} at step ${run.step} of ${run.steps}: ${run.reason}`);
    default:
      return result satisfies never;
  }
};

/** The run's stages from its record, or a new record from what this turn has. */
async function planTurn({ store, home, agent, engine: open, left }: Work, turn: LoopTurn) {
  const { seed, state } = turn;
  const engine = await open();
  const id = runId(turn);
  const runs = postgresRunStore(store);
  const read = datasetReader(store, home);
  const begun = await runs.get(id);
  if (begun) return { run: begun, plan: await planRun(settingsOf(begun), begun, engine, read, agent) };
  const base = state.baseline!.checkpoint;
  const { dataset } = state.curate!;
  const { spec } = await specOf(
    agent,
    // The golden cases decide, and they decide once.
    { base, seed, dataset, overrides: { validationTasks: 0 }, budget: budgetOf(agent.train.budget, left) },
    read,
  );
  const plan = await planRun(spec.settings, spec, engine, read, agent);
  const fresh = { ...spec, id, agent: agent.name, folder: join(home, 'runs', id) };
  return { plan, run: await createRun(runs, fresh, plan.stages, Date.now()) };
}

/** Why this recipe; nothing where the agent's file names it. */
async function whyOf({ store, home, agent }: Work, { state }: LoopTurn, recipe: string): Promise<readonly string[]> {
  if (agent.train.recipe !== 'auto') return [];
  const advice = await adviceFor(agent, state.curate!.dataset, datasetReader(store, home));
  return advice.recipe === recipe ? advice.reasons : [];
}

/** What the agent's file allows one run, and never more than the turn has left. */
function budgetOf({ hours, tokens, money }: Work['agent']['train']['budget'], left: Work['left']): Budget {
  const least = (own: number | undefined, rest: number | null) => Math.min(own ?? Infinity, rest ?? Infinity);
  const most = {
    seconds: least(hours === undefined ? undefined : hours * 3600, left.seconds),
    tokens: least(tokens, left.tokens),
    money: least(money, left.money),
  };
  return Object.fromEntries(Object.entries(most).filter(([, n]) => n !== Infinity));
}

function describe({ stage, stageStep, values }: StepMetrics, shown: number[]): string {
  if (values.success === undefined) return `${stage} ${stageStep + 1}  loss ${(values.loss ?? 0).toFixed(3)}`;
  shown.push(values.success);
  const recent = shown.slice(-10);
  const mean = recent.reduce((sum, one) => sum + one, 0) / recent.length;
  return `${stage} ${stageStep + 1}  success in practice ${Math.round(mean * 100)}%`;
}
