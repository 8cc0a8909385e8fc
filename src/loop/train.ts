/**
 * Train: what the agent's own good conversations and pairs show, and practice, where there is an environment. Only a finished run's
 * weights go on: one that was interrupted goes on here when the stage is entered again, and whether one that somebody paused
 * or stopped does is not decided here (next-step.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { needReady } from '../curate/check.ts';
import { conditionNames } from '../curate/prerequisites.ts';
import { datasetReader } from '../curate/read.ts';
import { auditedRuns } from '../train/audited-runs.ts';
import { auditOverride, needDataset, presentDataset } from '../train/begin.ts';
import { modelFolder, runFolder, runPlaces } from '../train/checkpoints.ts';
import { markFor } from '../train/internal.ts';
import type { StepMetrics } from '../train/metrics.ts';
import { ownerAlive } from '../train/owner.ts';
import { adviceFor, planRun, type RunSettings, settingsOf, specOf } from '../train/plan.ts';
import { fetchMaterial, keepMaterial } from '../train/portable.ts';
import { exportResult, resultOf } from '../train/result.ts';
import { createRun, train as trainRun } from '../train/run.ts';
import { claimRefusal, type RunRecord, type RunStore } from '../train/run-record.ts';
import type { Budget } from '../train/stop.ts';
import { runId, type Step, type Work } from './parts.ts';
import type { LoopTurn } from './turn.ts';

export const train: Step = async (work, turn) => {
  const { store, artifacts, say, signal } = work;
  const runs = auditedRuns(store, 'pawl');
  const id = runId(turn);
  const engine = await work.trainer();
  const begun = await runs.get(id);
  if (begun === null || resultOf(begun, await runs.checkpoints(id)).kind === 'open') {
    await untilFree(runs, id, signal);
    const { plan, run } = await planTurn(work, turn);
    const shown: number[] = [];
    try {
      const places = runPlaces(artifacts, run);
      for await (const metrics of trainRun(id, {
        ...{ engine, store: runs, ...plan, ...places, model: id, signal, tracker: work.tracker },
      }))
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
      const model = modelFolder(artifacts.home, id);
      await exportResult(id, model, { store: runs, engine, ...runPlaces(artifacts, run) });
      const checkpoint = await artifacts.add({ kind: 'model' }, model);
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

/** A worker of another machine that died while it trained this is known by its silence, which takes a minute. */
async function untilFree(runs: RunStore, id: string, signal: AbortSignal): Promise<void> {
  for (const end = Date.now() + 90_000; Date.now() < end; await sleep(1_000, undefined, { signal })) {
    const run = await runs.get(id);
    if (run === null || claimRefusal(run, Date.now(), ownerAlive) === null) return;
  }
}

/** The run's stages from its record, or a new record from what this turn has. */
async function planTurn(work: Work, turn: LoopTurn) {
  const { store, artifacts, agent, trainer: open, left } = work;
  const { seed, state } = turn;
  const engine = await open();
  const id = runId(turn);
  const runs = auditedRuns(store, 'pawl');
  const read = datasetReader(store, artifacts);
  const begun = await runs.get(id);
  const planOf = async (run: { base: string; settings: RunSettings; seed: number }) => {
    const here = await fetchMaterial(artifacts, run);
    return planRun(here.settings, here, engine, read, agent);
  };
  if (begun) return { run: begun, plan: await planOf({ ...begun, settings: settingsOf(begun) }) };
  const base = state.baseline!.checkpoint;
  const { dataset } = state.curate!;
  const { spec } = await specOf(
    agent,
    // The golden cases decide, and they decide once.
    { base, seed, dataset, overrides: { validationTasks: 0 }, budget: budgetOf(agent.train.budget, left) },
    read,
  );
  const kept = await keepMaterial(artifacts, spec);
  const plan = await planOf(kept);
  const internal = await markFor({ store, artifacts, engine }, spec);
  const fresh = { ...kept, id, agent: agent.name, folder: runFolder(artifacts, id), internal };
  const run = await createRun(runs, fresh, plan.stages, Date.now());
  await auditWithout(work, run);
  return { plan, run };
}

/** That it goes on without a condition because the agent's file says so. */
async function auditWithout({ store, artifacts, agent }: Work, run: RunRecord): Promise<void> {
  const { dataset } = settingsOf(run);
  if (dataset === undefined) return;
  const present = await presentDataset(store, await needDataset(store, dataset));
  const { overridden } = await needReady(store, artifacts, present, agent, conditionNames);
  await auditOverride(store, run, overridden, 'pawl');
}

/** Why this recipe; nothing where the agent's file names it. */
async function whyOf(
  { store, artifacts, agent }: Work,
  { state }: LoopTurn,
  recipe: string,
): Promise<readonly string[]> {
  if (agent.train.recipe !== 'auto') return [];
  const advice = await adviceFor(agent, state.curate!.dataset, datasetReader(store, artifacts));
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
