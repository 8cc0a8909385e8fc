/** The part that works on what was recorded: the loops of all agents with their stages, rollouts, and what is done now and then. */
import { watchHooks } from '../deploy/hooks.ts';
import { watchRollouts } from '../deploy/watch-rollouts.ts';
import type { KeptEngine } from '../engine/keep.ts';
import { type Loops, type LoopsParts, startLoops } from '../loop/runner.ts';
import type { Store } from '../store/postgres.ts';
import type { Doing } from '../store/processes.ts';
import { type Ground, type Part, together } from './ground.ts';
import { jobs } from './jobs.ts';
import { startSchedule } from './schedule.ts';
import { scoreJobs } from './score-jobs.ts';

export type WorkerRole = Part & Pick<Loops, 'progress'> & { doing(): readonly Doing[] };

export function startWorker(
  { config, artifacts, log, process }: Ground,
  store: Store,
  answers: Store,
  engine: KeptEngine,
  around: Pick<LoopsParts, 'gatewayUrl' | 'recorded'>,
): WorkerRole {
  const serving = async () => (await engine.process()).engine;
  const loops = startLoops({
    ...{ store, artifacts, config, log, process, engine: serving, trainer: engine.trainer },
    ...around,
  });
  const parts = together([
    watchRollouts(answers, log, process),
    watchHooks(answers, config.hooks, log),
    startSchedule({ store: answers, artifacts, config, log, process }, jobs),
    // By itself: a judge may take its time, and nothing else that is due waits for it.
    startSchedule({ store, artifacts, config, log, process }, scoreJobs(config.agents)),
    loops,
  ]);
  const doing = () =>
    config.agents.flatMap(({ name }) => {
      const progress = loops.progress(name);
      return progress === null ? [] : [{ agent: name, ...progress }];
    });
  return { progress: loops.progress, doing, close: parts.close };
}
