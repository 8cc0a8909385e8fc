/**
 * The loop: collect → score → curate → train → evaluate → deploy, and round again.
 *
 * One turn of it is a row in the database (loop-turn.ts). Each stage reads what the stages before it left there, does its
 * work through the stage's own folder, and leaves its own part; then the row is saved. Killed anywhere, the turn goes on at
 * the stage it was in: stages are safe to run again, and everything random in them follows from the turn's seed.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { consentedRows } from './curate/consented.ts';
import { examplesOf } from './curate/examples.ts';
import { curateWindow } from './curate/run.ts';
import { createRelease, reconcile, startRollout } from './deploy/reconcile.ts';
import { isOpen, type Rollout, weightOf } from './deploy/rollout.ts';
import type { Engine } from './engine/engine.ts';
import type { Report } from './evaluate/report.ts';
import { evaluate } from './evaluate/run.ts';
import { makeSuite } from './evaluate/suite.ts';
import { type LoopState, type LoopTurn, type StageName, stageNames } from './loop-turn.ts';
import { defaultReward } from './score/default-reward.ts';
import { scoreWindow } from './score/run.ts';
import { loadChatCodec } from './simulate/chat-codec.ts';
import type { ChatCodec } from './simulate/engine-player.ts';
import type { Environment, Task } from './simulate/environment.ts';
import { readDataset } from './store/datasets.ts';
import { saveLoopTurn } from './store/loop-turns.ts';
import type { Store } from './store/postgres.ts';
import { readRelease, servingRelease } from './store/releases.ts';
import { readReport, saveReport } from './store/reports.ts';
import { readRollout } from './store/rollouts.ts';
import { postgresRunStore } from './store/runs.ts';
import { environmentSource, exampleFrom } from './train/episodes.ts';
import type { StepMetrics } from './train/metrics.ts';
import { recipes } from './train/recipes.ts';
import { createRun, train } from './train/run.ts';
import type { Example } from './train/sft.ts';
import type { Stage } from './train/stage.ts';

/** What the loop turns on: where to practise, what to measure with, and, in a demo, who comes to talk. */
export type World<Data = unknown, Database = unknown> = {
  readonly environment: Environment<Data, Database>;
  /** Checkpoint that serves before any other exists. */
  readonly base: string;
  readonly golden: () => readonly Task<Data>[];
  /** Tasks to practise on; they share nothing with the golden ones. */
  readonly practice: (seed: number) => readonly Task<Data>[];
  /** What the model must not forget. */
  readonly broad: (codec: ChatCodec, seed: number) => readonly Example[];
  /** Simulated customers who talk to the agent through the gateway; without them, real traffic is waited for. */
  readonly customers: (visits: Visits) => Promise<{ conversations: number; resolved: number }>;
};

export type Visits = {
  /** Trajectory ids begin with this. */
  readonly prefix: string;
  readonly seed: number;
  readonly count: number;
  readonly signal?: AbortSignal;
  readonly onVisit?: (done: number) => void;
};

export type LoopSettings = {
  readonly conversations: number;
  readonly minScore: number;
  readonly grpoSteps: number;
  readonly rollout: NonNullable<Parameters<typeof startRollout>[1]['settings']>;
  /** Conversations sent at a time while a rollout is watched. */
  readonly wave: number;
};

export type LoopParts = {
  readonly store: Store;
  readonly home: string;
  readonly engine: Engine;
  /** Name of the upstream that serves the engine's models. */
  readonly upstream: string;
  readonly world: World;
  readonly settings: LoopSettings;
  /** Resolves once all traffic so far is in the database. */
  readonly recorded: () => Promise<void>;
  /** What is going on, for whoever watches. */
  readonly say: {
    progress(stage: StageName, share: number, text: string): void;
    done(stage: StageName, state: LoopState): void;
  };
  readonly signal?: AbortSignal;
};

type Step = (parts: LoopParts, turn: LoopTurn) => Promise<LoopState>;

const steps: Readonly<Record<StageName, Step>> = { collect, score, curate, train: practise, evaluate: examine, deploy };

/** Runs the turn to its end from wherever it is. */
export async function runTurn(parts: LoopParts, begun: LoopTurn): Promise<LoopTurn> {
  let turn = begun;
  for (const stage of stageNames) {
    if (turn.done.includes(stage)) continue;
    parts.signal?.throwIfAborted();
    const started = Date.now();
    const part = await steps[stage](parts, turn);
    const seconds = { ...turn.state.seconds, [stage]: (Date.now() - started) / 1000 };
    const last = stage === stageNames.at(-1);
    turn = {
      ...turn,
      done: [...turn.done, stage],
      state: { ...turn.state, ...part, seconds },
      endedAt: last ? Date.now() : null,
    };
    await saveLoopTurn(parts.store, turn);
    parts.say.done(stage, turn.state);
  }
  return turn;
}

async function collect(
  { store, world, settings, recorded, say, signal }: LoopParts,
  turn: LoopTurn,
): Promise<LoopState> {
  const release = await servingRelease(store, turn.agent);
  if (release?.checkpoint == null) throw new Error(`Agent ${turn.agent} has no release of its own that serves yet.`);
  // A window that was cut off by a crash is not continued but begun anew: half a conversation is nobody's example.
  const since = Date.now();
  const visited = await world.customers({
    prefix: `turn-${turn.number}-${since.toString(36)}`,
    seed: turn.seed,
    count: settings.conversations,
    ...(signal ? { signal } : {}),
    onVisit: (done) => say.progress('collect', done / settings.conversations, `${done} conversations`),
  });
  const until = Date.now() + 1;
  // Answers are recorded behind the caller's back. Until the last of them is in the database the window is not whole, and a
  // crash could still take some of it.
  await recorded();
  return {
    baseline: { release: release.name, checkpoint: release.checkpoint },
    collect: { since, until, ...visited },
  };
}

async function score({ store }: LoopParts, { agent, state }: LoopTurn): Promise<LoopState> {
  const { since, until } = state.collect!;
  const window = { agent, spec: defaultReward, since: new Date(since), until: new Date(until) };
  const counts = await scoreWindow(store, { ...window, now: new Date() });
  const { trajectories, unmeasured, tooLong } = counts;
  return { score: { trajectories, scored: trajectories - unmeasured - tooLong } };
}

async function curate({ store, home, settings }: LoopParts, { agent, seed, state }: LoopTurn): Promise<LoopState> {
  const { since, until } = state.collect!;
  const dataset = await curateWindow(store, home, {
    agent,
    spec: defaultReward,
    since: new Date(since),
    until: new Date(until),
    settings: { minScore: settings.minScore },
    seed,
    now: new Date(),
  });
  const funnel = dataset.funnel.map(({ gate, entered, passed }) => ({ gate, entered, passed }));
  return { curate: { dataset: dataset.id, rows: dataset.rows, funnel } };
}

/** First what the agent's own good conversations show, then practice in the environment. */
async function practise(parts: LoopParts, { agent, number, seed, state }: LoopTurn): Promise<LoopState> {
  const { store, home, engine, world, settings, say, signal } = parts;
  const base = state.baseline!.checkpoint;
  const codec = await loadChatCodec(base);
  const examples = await curatedExamples(parts, state.curate!.dataset, codec);
  const stages: Stage[] = await recipes[examples.length === 0 ? 'grpo' : 'sft-grpo']({
    engine,
    base,
    seed,
    examples,
    source: environmentSource(world.environment, world.practice(seed), codec),
    replay: { examples: world.broad(codec, seed), share: 0.1 },
    settings: { grpo: { steps: settings.grpoSteps } },
  });
  const runs = postgresRunStore(store);
  const run = `${agent}-turn-${number}`;
  const folder = join(home, 'runs', run);
  const recipe = examples.length === 0 ? 'grpo' : 'sft-grpo';
  if ((await runs.get(run)) === null)
    await createRun(runs, { id: run, agent, recipe, settings: {}, base, folder, seed, budget: {} }, stages, Date.now());
  const record = (await runs.get(run))!;
  if (record.status !== 'finished') {
    const shown: number[] = [];
    const trainParts = { engine, store: runs, stages, model: run, ...(signal ? { signal } : {}) };
    for await (const metrics of train(run, trainParts))
      say.progress('train', (metrics.step + 1) / record.steps, describe(metrics, shown));
  }
  const checkpoint = join(home, 'models', run);
  if (!existsSync(checkpoint)) await exportLatest(parts, run, checkpoint);
  const { spent, step } = (await runs.get(run))!;
  return { train: { run, steps: step, tokens: spent.tokens, checkpoint } };
}

/** The run's newest weights as a folder that can be served: without optimizer state, whole or not there. */
async function exportLatest({ store, engine }: LoopParts, run: string, folder: string): Promise<void> {
  const newest = (await postgresRunStore(store).checkpoints(run)).at(-1);
  if (newest === undefined) throw new Error(`Run ${run} ended without a checkpoint.`);
  if ((await engine.models()).some(({ name }) => name === run)) await engine.unload(run);
  await engine.load(run, newest.folder);
  await engine.save(run, folder, { optimizer: false });
  await engine.unload(run);
}

async function curatedExamples({ store, home }: LoopParts, id: string, codec: ChatCodec): Promise<Example[]> {
  const dataset = await readDataset(store, { id });
  if (dataset === null) throw new Error(`There is no dataset ${id}; \`pawl datasets list\` shows those that exist.`);
  const examples: Example[] = [];
  // Written again from its words: what was redacted has no exact tokens, and the rest must look the same.
  for await (const row of consentedRows(store, home, dataset))
    for (const one of examplesOf(row))
      if (one.quality >= 0.8) examples.push(exampleFrom(codec, one.messages, one, one.tools));
  return examples;
}

/** The 150 golden cases with the serving release and with the candidate, task by task. */
async function examine(parts: LoopParts, { agent, number, seed, state }: LoopTurn): Promise<LoopState> {
  const { store, engine, world, say, signal } = parts;
  const { release, checkpoint: base } = state.baseline!;
  const candidate = { name: `${agent}-${number}`, model: `${agent}-${number}` };
  await ensureLoaded(engine, candidate.model, state.train!.checkpoint);
  const baseline = await readRelease(store, { agent, name: release });
  await ensureLoaded(engine, baseline!.model, base);
  const report: Report = await evaluate({
    agent,
    engine,
    environment: world.environment,
    suite: makeSuite('golden', world.golden()),
    codec: await loadChatCodec(base),
    baseline: { name: release, model: baseline!.model },
    candidate,
    seed,
    ...(signal ? { signal } : {}),
    onProgress: (played, total) => say.progress('evaluate', played / total, `${played} of ${total} episodes`),
  });
  await saveReport(store, report);
  const { overall, verdict, reasons, id } = report;
  if (overall === null) throw new Error(`The golden set could not be played: ${reasons.join(' ')}`);
  const { baseline: before, candidate: after, interval, p } = overall;
  return { evaluate: { report: id, verdict, before, after, interval, p, reasons } };
}

/** A verdict of pass starts the canary; anything else leaves the users where they are. */
async function deploy(parts: LoopParts, { agent, number, seed, state }: LoopTurn): Promise<LoopState> {
  const { store, engine, world, settings, upstream, recorded, say, signal } = parts;
  const report = (await readReport(store, state.evaluate!.report))!;
  const name = `${agent}-${number}`;
  const { checkpoint, run } = state.train!;
  const candidate = await createRelease(
    store,
    { agent, name, upstream, model: name, checkpoint, run, report: report.id, dataset: state.curate!.dataset },
    'pawl',
    Date.now(),
  );
  if (report.verdict !== 'pass')
    return {
      deploy: { rollout: null, phase: `not deployed: ${report.verdict}`, release: name, reasons: report.reasons },
    };
  await ensureLoaded(engine, name, checkpoint);
  const id = `${agent}-turn-${number}`;
  const start = { id, agent, candidate, report, settings: settings.rollout, actor: 'pawl' };
  let rollout: Rollout = await startRollout(store, start, Date.now());
  for (let wave = 0; isOpen(rollout); wave++) {
    signal?.throwIfAborted();
    const share = weightOf(rollout);
    say.progress('deploy', share, `${Math.round(share * 100)}% of users on ${name}`);
    await world.customers({
      prefix: `turn-${number}-wave-${wave}-${Date.now().toString(36)}`,
      seed: seed * 1000 + wave + 1,
      count: settings.wave,
      ...(signal ? { signal } : {}),
    });
    await recorded();
    await reconcile(store, { now: Date.now(), agent });
    rollout = (await readRollout(store, id))!;
    if (rollout.phase === 'waiting' || rollout.phase === 'paused') break; // a person decides
  }
  return { deploy: { rollout: id, phase: rollout.phase, release: name, reasons: rollout.reasons } };
}

export async function ensureLoaded(engine: Engine, model: string, folder: string): Promise<void> {
  if (!(await engine.models()).some(({ name }) => name === model)) await engine.load(model, folder);
}

function describe({ stage, stageStep, values }: StepMetrics, shown: number[]): string {
  if (values.success === undefined) return `${stage} ${stageStep + 1}  loss ${(values.loss ?? 0).toFixed(3)}`;
  shown.push(values.success);
  const recent = shown.slice(-10);
  const mean = recent.reduce((sum, one) => sum + one, 0) / recent.length;
  return `${stage} ${stageStep + 1}  success in practice ${Math.round(mean * 100)}%`;
}
