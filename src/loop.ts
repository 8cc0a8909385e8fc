/**
 * The loop: collect → score → curate → train → evaluate → deploy, and round again.
 *
 * One turn of it is a row in the database (loop-turn.ts). Each stage reads what the stages before it left there, does its
 * work through the stage's own folder, and leaves its own part; then the row is saved. Killed anywhere, the turn goes on at
 * the stage it was in: stages are safe to run again, and everything random in them follows from the turn's seed.
 */
import { join } from 'node:path';
import { datasetReader } from './curate/read.ts';
import { curateWindow } from './curate/run.ts';
import { createRelease, reconcile, startRollout } from './deploy/reconcile.ts';
import { isOpen, type Rollout, rolloutSettings, weightOf } from './deploy/rollout.ts';
import { measureUsers } from './deploy/users.ts';
import type { Engine } from './engine/engine.ts';
import type { Report } from './evaluate/report.ts';
import { evaluate } from './evaluate/run.ts';
import { makeSuite } from './evaluate/suite.ts';
import { type LoopState, type LoopTurn, type StageName, stageNames } from './loop-turn.ts';
import { defaultReward } from './score/default-reward.ts';
import { scoreWindow } from './score/run.ts';
import { loadChatCodec } from './simulate/chat-codec.ts';
import type { Task } from './simulate/environment.ts';
import { saveLoopTurn } from './store/loop-turns.ts';
import type { Store } from './store/postgres.ts';
import { readRelease, servingRelease } from './store/releases.ts';
import { readReport, saveReport } from './store/reports.ts';
import { readRollout } from './store/rollouts.ts';
import { postgresRunStore } from './store/runs.ts';
import type { StepMetrics } from './train/metrics.ts';
import { ownerAlive } from './train/owner.ts';
import { type OfAgent, planRun, type RunSettings, runSettings, settingsOf, wholeSettings } from './train/plan.ts';
import { exportResult, resultOf } from './train/result.ts';
import { createRun, train } from './train/run.ts';
import { claimRefusal, type RunRecord } from './train/run-record.ts';
import { sftDefaults } from './train/sft.ts';

/** What the loop turns on: where to practise, what to measure with, and, in a demo, who comes to talk. */
export type World = OfAgent & {
  readonly golden: () => readonly Task[];
  /** Simulated customers who talk to the agent through the gateway; without them, real traffic is waited for. */
  readonly customers: (visits: Visits) => Promise<{ conversations: number; resolved: number }>;
};

/** How customers reach the agent, and how whoever serves them notes who agreed to training. */
export type Door = {
  /** Address of the gateway, without /v1. */
  readonly url: string;
  readonly key: string;
  readonly agent: string;
  readonly consent: (user: string, consent: 'given' | 'withdrawn') => Promise<void>;
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
  readonly train: Pick<RunSettings, 'steps' | 'tasksPerStep' | 'attempts' | 'learningRate'>;
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
  /** Goes on with a run that somebody paused: somebody said so. */
  readonly resume?: boolean;
};

type Step = (parts: LoopParts, turn: LoopTurn) => Promise<LoopState>;

const steps: Readonly<Record<StageName, Step>> = { collect, score, curate, train: practise, evaluate: examine, deploy };

/**
 * Runs the turn from wherever it is to its end, or to where it has to wait for a person (`state.waits`). Aborted, it throws:
 * the stage it was in is not done, and is entered again at the next start.
 */
export async function runTurn(parts: LoopParts, begun: LoopTurn): Promise<LoopTurn> {
  let turn = begun;
  for (const stage of stageNames) {
    if (turn.done.includes(stage)) continue;
    parts.signal?.throwIfAborted();
    const started = Date.now();
    const part = await steps[stage](parts, turn);
    const seconds = { ...turn.state.seconds, [stage]: (Date.now() - started) / 1000 };
    const { waits: _, ...before } = turn.state;
    const isDone = part.waits === undefined && part.ended === undefined;
    const isOver = part.ended !== undefined || (isDone && stage === stageNames.at(-1));
    turn = {
      ...turn,
      done: isDone ? [...turn.done, stage] : turn.done,
      state: { ...before, ...part, seconds },
      endedAt: isOver ? Date.now() : null,
    };
    await saveLoopTurn(parts.store, turn);
    if (!isDone) return turn;
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

/**
 * First what the agent's own good conversations show, then practice in the environment. Only a finished run's weights go on
 * to evaluation: one that was interrupted goes on here at the next start, one that somebody paused makes the turn wait, one
 * that was stopped ends it.
 */
async function practise(parts: LoopParts, turn: LoopTurn): Promise<LoopState> {
  const { store, home, engine, say, signal, resume = false } = parts;
  const runs = postgresRunStore(store);
  const id = `${turn.agent}-turn-${turn.number}`;
  const begun = await runs.get(id);
  const elsewhere = begun && begun.status !== 'finished' ? claimRefusal(begun, Date.now(), ownerAlive) : null;
  if (elsewhere !== null) return { waits: elsewhere };
  const known = begun ? resultOf(begun, await runs.checkpoints(id)).kind : 'open';
  if (known === 'open' || (known === 'held' && resume)) {
    const { plan, run } = await planTurn(parts, turn, id, begun);
    const shown: number[] = [];
    const training = train(id, { engine, store: runs, ...plan, model: id, ...(signal ? { signal } : {}) });
    try {
      for await (const metrics of training)
        say.progress('train', (metrics.step + 1) / run.steps, describe(metrics, shown));
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Error(
        `Run ${id} failed: ${(error as Error).message} Start again to go on from its newest checkpoint, or end the turn without a candidate: \`pawl runs stop ${id}\`, then start again.`,
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
      return { train: { run: id, steps: run.step, tokens: run.spent.tokens, checkpoint } };
    }
    case 'held':
      return {
        waits: `${result.sentence} Start with --resume to go on with it, or train on with \`pawl runs resume ${id}\` and start again.`,
      };
    case 'stopped':
      return { ended: `${result.sentence} There is no candidate; the users stay where they are.` };
    case 'open':
      throw new Error(`Run ${id} is ${run.status} at step ${run.step} of ${run.steps}: ${run.reason}`);
    default:
      return result satisfies never;
  }
}

/** The run's stages from its record, or a new record from what this turn has. */
async function planTurn(parts: LoopParts, turn: LoopTurn, id: string, begun: RunRecord | null) {
  const { store, home, engine, world, settings } = parts;
  const { agent, seed, state } = turn;
  const read = datasetReader(store, home);
  if (begun) return { run: begun, plan: await planRun(settingsOf(begun), begun, engine, read, world) };
  const { dataset } = state.curate!;
  let good = 0;
  for await (const { quality } of read(dataset)) if (quality >= sftDefaults.minQuality) good++;
  const recipe = good === 0 ? 'grpo' : 'sft-grpo';
  const whole = wholeSettings(
    runSettings.parse({
      ...settings.train,
      recipe,
      ...(good === 0 ? {} : { dataset }),
      ofAgent: true,
      tasks: world.train.tasks,
      ...(world.train.replay ? { replay: { share: world.train.replay.share } } : {}),
      validationTasks: 0, // the golden set decides, and it decides once
    }),
  );
  const base = state.baseline!.checkpoint;
  const plan = await planRun(whole, { base, seed }, engine, read, world);
  const folder = join(home, 'runs', id);
  const fresh = { id, agent, recipe, settings: whole, base, folder, seed, budget: {} };
  return { plan, run: await createRun(postgresRunStore(store), fresh, plan.stages, Date.now()) };
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
    environment: world.environment!,
    suite: makeSuite('golden', world.golden()),
    codec: await loadChatCodec(base),
    baseline: { name: release, model: baseline!.model },
    candidate,
    seed,
    ...(signal ? { signal } : {}),
    onProgress: (played, total) => say.progress('evaluate', played / total, `${played} of ${total} episodes`),
  });
  await saveReport(store, report);
  // One that was saved before a crash stands; what follows must be about the same.
  const { overall, verdict, reasons, id } = (await readReport(store, report.id))!;
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
  const { outcome } = rolloutSettings.parse(settings.rollout);
  const { release: baseline } = state.baseline!;
  const seen = async (rollout: Rollout | null) => {
    const of = { agent, baseline, candidate: name, collected: state.collect!, rollout };
    return outcome === null ? null : await measureUsers(store, { ...of, outcome }, Date.now());
  };
  if (report.verdict !== 'pass')
    return {
      deploy: { rollout: null, phase: `not deployed: ${report.verdict}`, release: name, reasons: report.reasons },
      users: await seen(null),
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
    if (rollout.phase === 'waiting' || rollout.phase === 'paused')
      return {
        waits: `Rollout ${id} is ${rollout.phase}: ${rollout.reasons.join(' ')} Decide with \`pawl rollouts approve ${id}\` or \`pawl rollouts abort ${id}\`, then start again.`,
      };
  }
  return {
    deploy: { rollout: id, phase: rollout.phase, release: name, reasons: rollout.reasons },
    users: await seen(rollout),
  };
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
