/**
 * Carries a recipe out, and can be killed at any moment: the IO edge of train/. Each stage begins from a checkpoint of its
 * own with a fresh optimizer; within a stage a checkpoint is made every few steps. After a crash the run loads the newest
 * checkpoint, forgets the metrics of the steps after it, and does them again; since a step follows from weights, state and
 * (seed, step), the curve is the same.
 *
 * Order of writes: weights on disk, then the row that names them; metrics and progress in one transaction; a row is dropped
 * before its folder. A crash between two of them leaves at most a folder that no row names, which the next start removes.
 *
 * An engine that died and came back without the weights is no end: the run goes on from its newest checkpoint.
 */
import { appendFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Engine, LoraSpec } from '../engine/engine.ts';
import { writeMark } from '../engine/internal-mark.ts';
import { ConflictError, EngineError } from '../errors.ts';
import { type Checkpoints, checkpointsInFolder } from './checkpoints.ts';
import { keepEvery, keptOf, type Played } from './kept-episodes.ts';
import { type StepMetrics, toJsonLine } from './metrics.ts';
import type { Tracker, Tracking } from './mlflow.ts';
import { mixSeed } from './order.ts';
import { ownerAlive, thisOwner } from './owner.ts';
import { reload } from './reload.ts';
import {
  claimRefusal,
  markOf,
  type RunCheckpoint,
  type RunRecord,
  type RunStatus,
  type RunStore,
} from './run-record.ts';
import type { Stage } from './stage.ts';
import { createStepClock, timedEngine, timeFigures } from './step-clock.ts';
import { overBudget, type Spent, type Stop, type StopRules, stopDefaults, stopRule } from './stop.ts';
import { openEventFile } from './tensorboard.ts';

export type RunParts = {
  readonly engine: Engine;
  readonly store: RunStore;
  /** The recipe's stages, built anew from the run's settings. */
  readonly stages: readonly Stage[];
  /** Held-out success of a model; measured every `validateEvery` steps and at the end of each stage. */
  readonly validate?: (engine: Engine, model: string) => Promise<number>;
  readonly validateEvery?: number;
  /** Trains a fresh adapter over the base instead of all weights. */
  readonly lora?: LoraSpec;
  readonly checkpointEvery?: number; // 10
  /** Default: in the run's folder, on this machine. */
  readonly checkpoints?: Checkpoints;
  /** Logs the run elsewhere too. */
  readonly tracker?: Tracker | undefined;
  /** Of this machine, for metrics.jsonl. Default: the run's own, which is on the machine that began it. */
  readonly folder?: string;
  readonly rules?: Partial<StopRules>;
  /** What an hour of this costs. */
  readonly moneyPerHour?: number;
  /** Name of the model in the engine. It stays loaded when the run ends. */
  readonly model?: string;
  readonly now?: () => number;
  readonly signal?: AbortSignal;
  /** Whether the caller has taken the run (`takeRun`). */
  readonly isTaken?: boolean;
};

export type NewRun = Pick<RunRecord, 'id' | 'agent' | 'recipe' | 'settings' | 'base' | 'folder' | 'seed' | 'budget'> &
  Partial<Pick<RunRecord, 'internal'>>;

/** Writes the record of a run that has not begun. */
export async function createRun(
  store: RunStore,
  run: NewRun,
  stages: readonly Stage[],
  now: number,
): Promise<RunRecord> {
  const record: RunRecord = {
    ...run,
    steps: stepsOf(stages),
    step: 0,
    status: 'paused',
    reason: 'Not begun.',
    spent: { seconds: 0, tokens: 0, money: 0 },
    request: null,
    owner: null,
    heartbeatAt: now,
    createdAt: now,
    internal: run.internal ?? false,
  };
  await store.create(record);
  return record;
}

const stepsOf = (stages: readonly Stage[]): number => stages.reduce((n, stage) => n + stage.steps, 0);

/** Makes this process the one that trains the run; refuses where another is, or where it is not the run that was begun. */
export async function takeRun(store: RunStore, id: string, stages: readonly Stage[], now: number): Promise<void> {
  const record = await store.get(id);
  if (!record) throw new Error(`There is no run ${id}; 'pawl runs list' shows those that exist.`);
  const refusal = claimRefusal(record, now, ownerAlive);
  if (refusal) throw new ConflictError(refusal);
  const steps = stepsOf(stages);
  if (steps !== record.steps)
    throw new ConflictError(
      `Run ${id} was begun with ${record.steps} steps and now has ${steps}: what it learns from has changed since. Put that back, or begin a new run.`,
    );
  if (!(await store.claim(id, record, thisOwner(), now)))
    throw new ConflictError(
      `Run ${id} was taken by another process, or asked to pause, in this moment; look at it again.`,
    );
}

/** Times that the engine may be lost without a step in between; more is no accident. */
const losses = 3;

/**
 * Runs, or runs on, until the recipe, a rule, a budget or a request ends it. Yields each step after it is saved. Aborted, it
 * throws the signal's reason once the run is down as interrupted: an end that looks like any other would be taken for one.
 */
export async function* train(id: string, parts: RunParts): AsyncGenerator<StepMetrics, RunRecord> {
  const { store, now = Date.now } = parts;
  if (!parts.isTaken) await takeRun(store, id, parts.stages, now());
  const beating = setInterval(() => void store.heartbeat(id, now()).catch(() => {}), 15_000);
  beating.unref();
  const tracking = parts.tracker?.(id, store) ?? null;
  // What stands if the caller just stops asking for steps, or aborts.
  let end: { status: RunStatus; reason: string | null } = { status: 'paused', reason: 'Interrupted.' };
  try {
    for (let lost = 0, reached = -1; ; ) {
      try {
        end = yield* carryOn(id, parts, tracking);
        break;
      } catch (error) {
        if (parts.signal?.aborted || !(await isLost(error, parts.engine, parts.model ?? id))) throw error;
        const { step } = (await store.get(id))!;
        lost = step > reached ? 1 : lost + 1;
        if (lost > losses) throw error;
        reached = Math.max(reached, step);
      }
    }
  } catch (error) {
    if (!parts.signal?.aborted)
      end = { status: 'failed', reason: error instanceof Error ? error.message : String(error) };
    throw error;
  } finally {
    clearInterval(beating);
    try {
      await store.setStatus(id, end.status, end.reason, now());
    } finally {
      await tracking?.end();
    }
  }
  return (await store.get(id))!;
}

/** Whether the engine died under the run: a call says so, or the model it held is gone. */
async function isLost(error: unknown, engine: Engine, model: string): Promise<boolean> {
  if (error instanceof EngineError && error.retryable) return true;
  return !(await engine.models().catch(() => [{ name: model }])).some(({ name }) => name === model);
}

async function* carryOn(
  id: string,
  parts: RunParts,
  tracking: Tracking | null,
): AsyncGenerator<StepMetrics, { status: RunStatus; reason: string | null }> {
  const { store, stages, now = Date.now, checkpointEvery = 10, validateEvery = 0 } = parts;
  const clock = createStepClock(parts.engine.traits.computesHere);
  const engine = timedEngine(parts.engine, clock);
  const record = (await store.get(id))!;
  const { seed, budget } = record;
  const { folder = record.folder } = parts;
  const { checkpoints: kept = checkpointsInFolder(folder) } = parts;
  const model = parts.model ?? id;
  const rules = { ...stopDefaults, ...parts.rules };
  mkdirSync(folder, { recursive: true });

  const checkpoints = await store.checkpoints(id);
  removeUnnamed(folder, checkpoints);
  const newest = await newestWhole(checkpoints, kept);
  let step = newest?.step ?? 0;
  await store.rewind(id, step);
  const log = join(folder, 'metrics.jsonl');
  const done = await store.metrics(id);
  writeFileSync(log, done.map((m) => `${toJsonLine(id, m)}\n`).join(''));
  const events = openEventFile(folder, record.createdAt, done);
  // Time and money are gone whatever became of the steps they went into; tokens are those of the steps that count, so that
  // a budget of tokens ends the run at the same step.
  let spent: Spent = { ...record.spent, tokens: done.reduce((n, { values }) => n + (values.tokens ?? 0), 0) };
  // A checkpoint of an adapter brings its own; only the base is without.
  if (newest) await reload(engine, model, await kept.folder(newest.folder));
  else await reload(engine, model, await kept.folder(record.base), parts.lora);

  const save = async (kind: RunCheckpoint['kind'], stage: number, state: unknown, validation: number | null) => {
    const name = kind === 'stage' ? `stage-${stage}` : `step-${String(step).padStart(6, '0')}`;
    const draft = await kept.draft(name);
    await engine.save(model, draft, { optimizer: kind === 'step' });
    if (record.internal) await writeMark(draft, markOf(record));
    const at = await kept.keep(draft, name);
    await store.saveCheckpoint({ run: id, step, kind, stage, folder: at, state: state ?? null, validation });
    await prune(store, id, kept, at);
    return at;
  };

  // Of what a step plays, some is kept to be read.
  const between = keepEvery(record.steps);
  let keptAt = Number.NEGATIVE_INFINITY;
  let played: Played = [];
  const onPlayed = (groups: Played) => {
    played = groups;
  };

  let firstStep = 0;
  for (const [index, stage] of stages.entries()) {
    const lastStep = firstStep + stage.steps;
    if (step >= lastStep) {
      firstStep = lastStep;
      continue;
    }
    const known = await startOf(index, await store.checkpoints(id), kept);
    const start = await kept.folder(known?.folder ?? (await save('stage', index, null, null)));
    // Loading it back drops the optimizer's memory of the stage before.
    if (known === null) await reload(engine, model, start);
    const resumed = newest?.kind === 'step' && newest.stage === index ? (newest.state ?? undefined) : undefined;
    const history = [...(await store.metrics(id, firstStep))];
    const active = await stage.begin({ engine, model, start, seed: mixSeed(seed, index), clock, onPlayed }, resumed);
    // Killed between the step that was the last and the word of it, the run must not take one more.
    let ended: Stop | { kind: 'asked'; request: 'pause' | 'stop' } | null =
      stopRule(history, rules) ?? overBudget(spent, budget);
    try {
      while (step < lastStep && ended === null) {
        parts.signal?.throwIfAborted();
        const began = now();
        clock.take();
        const stageStep = step - firstStep;
        played = [];
        const { values, taskTypes } = await active.step(stageStep, parts.signal);
        const atEnd = step + 1 === lastStep;
        const due = (every: number) => every > 0 && ((stageStep + 1) % every === 0 || atEnd);
        const validation =
          parts.validate && due(validateEvery)
            ? await clock.during('environment', () => parts.validate!(engine, model))
            : null;
        const seconds = (now() - began) / 1000;
        const time = timeFigures(clock.take());
        spent = add(spent, seconds, values.tokens ?? 0, parts.moneyPerHour ?? 0);
        const metrics: StepMetrics = {
          step,
          stage: stage.name,
          stageStep,
          values: {
            ...values,
            ...(validation === null ? {} : { validation_success: validation }),
            seconds,
            ...time,
            ...(values.tokens !== undefined && seconds > 0 ? { tokens_per_second: values.tokens / seconds } : {}),
          },
          ...(taskTypes ? { taskTypes } : {}),
        };
        const kept = step - keptAt < between ? [] : keptOf(played);
        if (kept.length > 0) keptAt = step;
        const request = await store.saveStep(id, metrics, spent, now(), kept);
        appendFileSync(log, `${toJsonLine(id, metrics)}\n`);
        events.append(metrics);
        tracking?.stepped();
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

async function startOf(
  stage: number,
  checkpoints: readonly RunCheckpoint[],
  kept: Checkpoints,
): Promise<RunCheckpoint | null> {
  for (const c of checkpoints) if (c.kind === 'stage' && c.stage === stage && (await kept.isThere(c.folder))) return c;
  return null;
}

/** The newest checkpoint that a run can go on from: a step needs the start of its stage too, which is its reference. */
async function newestWhole(checkpoints: readonly RunCheckpoint[], kept: Checkpoints): Promise<RunCheckpoint | null> {
  for (const c of [...checkpoints].reverse())
    if ((await kept.isThere(c.folder)) && (await startOf(c.stage, checkpoints, kept)) !== null) return c;
  return null;
}

/** What a save or a prune that was killed has left: checkpoints that no row names. */
function removeUnnamed(folder: string, checkpoints: readonly RunCheckpoint[]): void {
  const named = new Set(checkpoints.map((c) => c.folder));
  for (const name of readdirSync(folder)) {
    const at = join(folder, name.replace(/^\.(.+)\.(next|previous|writing-.+)$/, '$1'));
    if (/(^|[.])(step|stage)-\d+/.test(name) && !named.has(at))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/**
 * Keeps stage starts, the two newest steps, and the best on validation; drops the rest, and what stood in the place of the
 * one just saved: its files are gone, or the run would not have made it again.
 */
async function prune(store: RunStore, id: string, kept: Checkpoints, saved: string): Promise<void> {
  const all = await store.checkpoints(id);
  const newest = all.find((c) => c.folder === saved)!;
  const isTwin = (c: RunCheckpoint) => c.kind === newest.kind && c.step === newest.step && c.stage === newest.stage;
  const twins = all.filter((c) => c !== newest && isTwin(c));
  const steps = all.filter((c) => c.kind === 'step' && !twins.includes(c));
  const best = steps.reduce<RunCheckpoint | null>(
    (b, c) => (c.validation !== null && c.validation >= (b?.validation ?? -1) ? c : b),
    null,
  );
  for (const c of [...twins, ...steps.slice(0, -2)]) {
    if (c === best) continue;
    await store.dropCheckpoint(id, c.folder);
    await kept.drop(c.folder);
  }
}

function add(spent: Spent, seconds: number, tokens: number, moneyPerHour: number): Spent {
  return {
    seconds: spent.seconds + seconds,
    tokens: spent.tokens + tokens,
    money: spent.money + (seconds / 3600) * moneyPerHour,
  };
}
