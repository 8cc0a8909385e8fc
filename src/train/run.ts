/**
 * Carries a recipe out, and can be killed at any moment: the IO edge of train/. Each stage begins from a checkpoint of its
 * own with a fresh optimizer; within a stage a checkpoint is made every few steps. After a crash the run loads the newest
 * checkpoint, forgets the metrics of the steps after it, and does them again; since a step follows from weights, state and
 * (seed, step), the curve is the same.
 *
 * Order of writes: weights on disk, then the row that names them; metrics and progress in one transaction. A crash between
 * two of them leaves at most a folder that no row names, which the next save replaces.
 */
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Engine } from '../engine/engine.ts';
import { type StepMetrics, toJsonLine } from './metrics.ts';
import { mixSeed } from './order.ts';
import { ownerAlive, thisOwner } from './owner.ts';
import { claimRefusal, type RunCheckpoint, type RunRecord, type RunStatus, type RunStore } from './run-record.ts';
import type { Stage } from './stage.ts';
import { overBudget, type Spent, type Stop, type StopRules, stopDefaults, stopRule } from './stop.ts';

export type RunParts = {
  readonly engine: Engine;
  readonly store: RunStore;
  /** The recipe's stages, built anew from the run's settings. */
  readonly stages: readonly Stage[];
  /** Held-out success of a model; measured every `validateEvery` steps and at the end of each stage. */
  readonly validate?: (engine: Engine, model: string) => Promise<number>;
  readonly validateEvery?: number;
  readonly checkpointEvery?: number; // 10
  readonly rules?: Partial<StopRules>;
  /** What an hour of this costs. */
  readonly moneyPerHour?: number;
  /** Name of the model in the engine. It stays loaded when the run ends. */
  readonly model?: string;
  readonly now?: () => number;
  readonly signal?: AbortSignal;
};

export type NewRun = Pick<RunRecord, 'id' | 'agent' | 'recipe' | 'settings' | 'base' | 'folder' | 'seed' | 'budget'>;

/** Writes the record of a run that has not begun. */
export async function createRun(
  store: RunStore,
  run: NewRun,
  stages: readonly Stage[],
  now: number,
): Promise<RunRecord> {
  const record: RunRecord = {
    ...run,
    steps: stages.reduce((n, s) => n + s.steps, 0),
    step: 0,
    status: 'paused',
    reason: 'Not begun.',
    spent: { seconds: 0, tokens: 0, money: 0 },
    request: null,
    owner: null,
    heartbeatAt: now,
    createdAt: now,
  };
  await store.create(record);
  return record;
}

/** Runs, or runs on, until the recipe, a rule, a budget or a request ends it. Yields each step after it is saved. */
export async function* train(id: string, parts: RunParts): AsyncGenerator<StepMetrics, RunRecord> {
  const { store, now = Date.now } = parts;
  const record = await store.get(id);
  if (!record) throw new Error(`There is no run ${id}; 'pawl runs list' shows those that exist.`);
  const refusal = claimRefusal(record, now(), ownerAlive);
  if (refusal) throw new Error(refusal);
  if (!(await store.claim(id, record.owner, thisOwner(), now())))
    throw new Error(`Run ${id} was taken by another process in this moment.`);
  const beating = setInterval(() => void store.heartbeat(id, now()).catch(() => {}), 15_000);
  beating.unref();
  // What stands if the caller just stops asking for steps, or aborts.
  let end: { status: RunStatus; reason: string | null } = { status: 'paused', reason: 'Interrupted.' };
  try {
    end = yield* carryOn(record, parts);
  } catch (error) {
    if (!parts.signal?.aborted) {
      end = { status: 'failed', reason: error instanceof Error ? error.message : String(error) };
      throw error;
    }
  } finally {
    clearInterval(beating);
    await store.setStatus(id, end.status, end.reason, now());
  }
  return (await store.get(id))!;
}

async function* carryOn(
  record: RunRecord,
  parts: RunParts,
): AsyncGenerator<StepMetrics, { status: RunStatus; reason: string | null }> {
  const { engine, store, stages, now = Date.now, checkpointEvery = 10, validateEvery = 0 } = parts;
  const { id, folder, seed, budget } = record;
  const model = parts.model ?? id;
  const rules = { ...stopDefaults, ...parts.rules };
  mkdirSync(folder, { recursive: true });

  const checkpoints = await store.checkpoints(id);
  const newest = checkpoints.at(-1) ?? null;
  let step = newest?.step ?? 0;
  await store.rewind(id, step);
  const log = join(folder, 'metrics.jsonl');
  writeFileSync(log, (await store.metrics(id)).map((m) => `${toJsonLine(id, m)}\n`).join(''));
  let { spent } = record;
  await reload(engine, model, newest?.folder ?? record.base);

  const save = async (kind: RunCheckpoint['kind'], stage: number, state: unknown, validation: number | null) => {
    const at = join(folder, kind === 'stage' ? `stage-${stage}` : `step-${String(step).padStart(6, '0')}`);
    if (existsSync(at)) rmSync(at, { recursive: true });
    await engine.save(model, at, { optimizer: kind === 'step' });
    await store.saveCheckpoint({ run: id, step, kind, stage, folder: at, state: state ?? null, validation });
    await prune(store, id);
    return at;
  };

  let firstStep = 0;
  for (const [index, stage] of stages.entries()) {
    const lastStep = firstStep + stage.steps;
    if (step >= lastStep) {
      firstStep = lastStep;
      continue;
    }
    const known = (await store.checkpoints(id)).find((c) => c.kind === 'stage' && c.stage === index);
    let start = known?.folder;
    if (!start) {
      start = await save('stage', index, null, null);
      // Loading it back drops the optimizer's memory of the stage before.
      await reload(engine, model, start);
    }
    const resumed = newest?.kind === 'step' && newest.stage === index ? (newest.state ?? undefined) : undefined;
    const history = [...(await store.metrics(id, firstStep))];
    const active = await stage.begin({ engine, model, start, seed: mixSeed(seed, index) }, resumed);
    let ended: Stop | { kind: 'asked'; request: 'pause' | 'stop' } | null = null;
    try {
      while (step < lastStep && ended === null) {
        parts.signal?.throwIfAborted();
        const began = now();
        const stageStep = step - firstStep;
        const { values, taskTypes } = await active.step(stageStep, parts.signal);
        const atEnd = step + 1 === lastStep;
        const due = (every: number) => every > 0 && ((stageStep + 1) % every === 0 || atEnd);
        const validation = parts.validate && due(validateEvery) ? await parts.validate(engine, model) : null;
        const seconds = (now() - began) / 1000;
        spent = add(spent, seconds, values.tokens ?? 0, parts.moneyPerHour ?? 0);
        const metrics: StepMetrics = {
          step,
          stage: stage.name,
          stageStep,
          values: {
            ...values,
            ...(validation === null ? {} : { validation_success: validation }),
            seconds,
            ...(values.tokens !== undefined && seconds > 0 ? { tokens_per_second: values.tokens / seconds } : {}),
          },
          ...(taskTypes ? { taskTypes } : {}),
        };
        const request = await store.saveStep(id, metrics, spent, now());
        appendFileSync(log, `${toJsonLine(id, metrics)}\n`);
        step++;
        history.push(metrics);
        ended =
          stopRule(history, rules) ??
          overBudget(spent, budget) ??
          (request === null ? null : { kind: 'asked', request });
        // Weights that a rule calls bad are not kept: the checkpoint before them is the run's result.
        if (ended?.kind !== 'bad' && (due(checkpointEvery) || ended !== null || validation !== null))
          await save('step', index, active.state(), validation);
        yield metrics;
      }
    } finally {
      await active.end();
    }
    if (ended !== null) {
      if (ended.kind === 'asked')
        return ended.request === 'pause'
          ? { status: 'paused', reason: 'Paused on request.' }
          : { status: 'stopped', reason: 'Stopped on request.' };
      // Enough of this stage is enough of this stage; the recipe goes on with the next.
      if (ended.kind !== 'enough') return { status: 'stopped', reason: ended.reason };
      if (index < stages.length - 1) step = lastStep;
      else return { status: 'finished', reason: ended.reason };
    }
    firstStep = lastStep;
  }
  return { status: 'finished', reason: null };
}

async function reload(engine: Engine, model: string, folder: string): Promise<void> {
  if ((await engine.models()).some((m) => m.name === model)) await engine.unload(model);
  await engine.load(model, folder);
}

/** Keeps stage starts, the two newest steps, and the best on validation; drops the rest from disk and store. */
async function prune(store: RunStore, id: string): Promise<void> {
  const all = (await store.checkpoints(id)).filter((c) => c.kind === 'step');
  const best = all.reduce<RunCheckpoint | null>(
    (b, c) => (c.validation !== null && c.validation >= (b?.validation ?? -1) ? c : b),
    null,
  );
  for (const c of all.slice(0, -2)) {
    if (c === best) continue;
    await store.dropCheckpoint(id, c.folder);
    rmSync(c.folder, { recursive: true, force: true });
  }
}

function add(spent: Spent, seconds: number, tokens: number, moneyPerHour: number): Spent {
  return {
    seconds: spent.seconds + seconds,
    tokens: spent.tokens + tokens,
    money: spent.money + (seconds / 3600) * moneyPerHour,
  };
}
