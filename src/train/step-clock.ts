/**
 * Where the time of a step goes, every moment counted once, so that the parts add up to the whole:
 *
 *   training      the engine computes gradients or takes a step, whatever else goes on meanwhile
 *   sampling      the engine samples, or makes the weights ready for it, and does not train
 *   environment   tools, users, graders, the user's own agent
 *   waiting       nothing of these: weights are loaded or saved, the database writes
 *   pawl          this process is busy itself: encoding, advantages, the wire
 *
 * Node says how long its loop has been idle and how long busy. What is idle belongs to what is under way; what is busy is Pawl's own, but for
 * an environment's code while it is called, and for an engine that computes in this process. Code of an environment that goes on
 * after an `await` of its own is counted as Pawl's. A server that serves traffic beside training has that counted as Pawl's too.
 */
import { performance } from 'node:perf_hooks';
import type { Engine } from '../engine/engine.ts';
import type { Environment } from '../simulate/environment.ts';
import type { StepMetrics } from './metrics.ts';

export const timeParts = ['sampling', 'environment', 'training', 'waiting', 'pawl'] as const;
export type TimePart = (typeof timeParts)[number];
/** Seconds. */
export type StepTime = Readonly<Record<TimePart, number>>;

type Work = 'training' | 'sampling' | 'environment';
/** Milliseconds since some beginning. */
export type Loop = { readonly idle: number; readonly active: number };

export type StepClock = {
  /** What `work` takes, from now until its promise settles, is of this kind. */
  during<T>(kind: Work, work: () => Promise<T>): Promise<T>;
  /** What `work` does before it returns is the environment's. */
  inEnvironment<T>(work: () => T): T;
  /** What was counted since the last time this was asked. */
  take(): StepTime;
};

export function createStepClock(
  computesHere: boolean,
  read: () => Loop = () => performance.eventLoopUtilization(),
): StepClock {
  const underWay: Record<Work, number> = { training: 0, sampling: 0, environment: 0 };
  let calls = 0;
  let spent = nothing();
  let last = read();

  const owner = (): Work | 'waiting' =>
    underWay.training > 0
      ? 'training'
      : underWay.sampling > 0
        ? 'sampling'
        : underWay.environment > 0
          ? 'environment'
          : 'waiting';
  /** Counts what has passed to what was going on. */
  const count = () => {
    const { idle, active } = read();
    const of = owner();
    spent[of] += (idle - last.idle) / 1000;
    const isEngine = computesHere && (of === 'training' || of === 'sampling');
    spent[calls > 0 ? 'environment' : isEngine ? of : 'pawl'] += (active - last.active) / 1000;
    last = { idle, active };
  };

  return {
    async during(kind, work) {
      count();
      underWay[kind]++;
      try {
        return await work();
      } finally {
        count();
        underWay[kind]--;
      }
    },
    inEnvironment(work) {
      count();
      calls++;
      try {
        return work();
      } finally {
        count();
        calls--;
      }
    },
    take() {
      count();
      const taken = spent;
      spent = nothing();
      return taken;
    },
  };
}

const nothing = (): Record<TimePart, number> => ({ sampling: 0, environment: 0, training: 0, waiting: 0, pawl: 0 });

/** The engine, its calls counted. */
export function timedEngine(engine: Engine, clock: StepClock): Engine {
  return {
    traits: engine.traits,
    load: (...call) => engine.load(...call),
    models: () => engine.models(),
    forward: (...call) => clock.during('training', () => engine.forward(...call)),
    forwardBackward: (...call) => clock.during('training', () => engine.forwardBackward(...call)),
    optimStep: (...call) => clock.during('training', () => engine.optimStep(...call)),
    sample: (...call) => clock.during('sampling', () => engine.sample(...call)),
    save: (...call) => engine.save(...call),
    snapshot: (...call) => clock.during('sampling', () => engine.snapshot(...call)),
    unload: (...call) => engine.unload(...call),
    close: () => engine.close(),
  };
}

/** The environment, its code counted. */
export function timedEnvironment<Data, Database>(
  environment: Environment<Data, Database>,
  clock: StepClock,
): Environment<Data, Database> {
  const { inEnvironment } = clock;
  return {
    ...environment,
    database: (task) => inEnvironment(() => environment.database(task)),
    tools: environment.tools.map((one) => ({
      ...one,
      run: (args, database) => inEnvironment(() => one.run(args, database)),
    })),
    user: (task) => {
      const user = inEnvironment(() => environment.user(task));
      return {
        open: () => inEnvironment(() => user.open()),
        answer: (spoken) => inEnvironment(() => user.answer(spoken)),
      };
    },
    gradeTurn: (view) => inEnvironment(() => environment.gradeTurn(view)),
    gradeEnd: (view) => inEnvironment(() => environment.gradeEnd(view)),
  };
}

/** The parts as figures of a step. */
export const timeFigures = (time: StepTime) => ({
  sampling_seconds: time.sampling,
  environment_seconds: time.environment,
  training_seconds: time.training,
  waiting_seconds: time.waiting,
  pawl_seconds: time.pawl,
});

/** The parts of the steps that have them, summed; null: none has. */
export function timeOf(steps: readonly Pick<StepMetrics, 'values'>[]): (StepTime & { readonly steps: number }) | null {
  const sum = nothing();
  let counted = 0;
  for (const { values } of steps) {
    if (values.pawl_seconds === undefined) continue;
    counted++;
    for (const part of timeParts) sum[part] += values[`${part}_seconds`] ?? 0;
  }
  return counted === 0 ? null : { steps: counted, ...sum };
}
