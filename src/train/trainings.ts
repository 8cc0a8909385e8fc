/**
 * Training in the process that serves, on its own engine, for whoever asks over the API: one run at a time, since two would
 * slow each other down, and the users too.
 *
 * `<home>/training.json` names the run that was asked for and has not ended. A process that was stopped or killed in the
 * middle leaves it there, and the next one goes on from the newest checkpoint; a finished run whose model was not written yet
 * counts as not ended. What somebody paused or stopped, and what failed, is no longer named: that goes on when somebody asks.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { agentOf, type Config } from '../config.ts';
import { datasetReader } from '../curate/read.ts';
import type { Engine } from '../engine/engine.ts';
import { ConflictError, NotFoundError, StoreError } from '../errors.ts';
import { writeAtomically } from '../store/atomic-file.ts';
import type { Store } from '../store/postgres.ts';
import { auditedRuns } from './audited-runs.ts';
import { type AskedRun, auditOverride, nameRun, specAsked } from './begin.ts';
import { modelFolder, runFolder, runPlaces } from './checkpoints.ts';
import { markFor } from './internal.ts';
import { mlflowTracker } from './mlflow.ts';
import { ownerAlive, thisOwner } from './owner.ts';
import { type Plan, planRun, type Specified, settingsOf } from './plan.ts';
import { fetchMaterial, keepMaterial } from './portable.ts';
import { exportResult, resultOf } from './result.ts';
import { createRun, takeRun, train } from './run.ts';
import { claimRefusal, type RunRecord } from './run-record.ts';

export type Begun = Pick<Specified, 'reasons' | 'unused'> & { readonly run: RunRecord; readonly plan: Plan };

export type Trainings = {
  /** A ConflictError names the run under way; a ConfigError or NotFoundError says what cannot be trained. */
  begin(agent: string, asked: AskedRun & { readonly id?: string | undefined; readonly by?: string }): Promise<Begun>;
  /** Goes on with a run that was paused, stopped, interrupted or failed. */
  resume(id: string): Promise<RunRecord>;
  /** Goes on with the run that an earlier process left, if there is one. */
  goOn(): void;
  /** Ends at a point from which the run can go on. */
  close(): Promise<void>;
};

export type TrainingsParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: Pick<Config, 'agents' | 'mlflow'>;
  readonly engine: () => Promise<Engine>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
};

const againMs = 1_000;
const closeMs = 10_000;
/** Runs that are looked through for one that the loop trains here. */
const newest = 100;

const leftSchema = z.strictObject({ run: z.string().min(1) });

export function createTrainings({ store, artifacts, config, engine: open, log }: TrainingsParts): Trainings {
  const { home } = artifacts;
  const runs = auditedRuns(store, 'pawl');
  const reader = datasetReader(store, artifacts);
  const stop = new AbortController();
  const { signal } = stop;
  const tracker = config.mlflow && mlflowTracker(config.mlflow, (sentence) => log.warn(sentence));
  const leftPath = join(home, 'training.json');
  /** What is under way, in words. */
  let busy: string | null = null;
  let working: Promise<void> = Promise.resolve();

  const keep = (run: string) => writeAtomically(leftPath, `${JSON.stringify({ run })}\n`);
  const forget = () => rmSync(leftPath, { force: true });

  const planOf = async (run: RunRecord): Promise<Plan> => {
    const here = await fetchMaterial(artifacts, { ...run, settings: settingsOf(run) });
    const agent = here.settings.ofAgent ? agentOf(config, run.agent) : undefined;
    return planRun(here.settings, here, await open(), reader, agent);
  };

  const stateOf = async (id: string) => {
    const run = await runs.get(id);
    if (run === null) return null;
    const { kind } = resultOf(run, await runs.checkpoints(id));
    return { run, kind, lacksModel: kind === 'finished' && !existsSync(modelFolder(home, id)) };
  };

  /** The stages of a run that goes on; where they cannot be built any more, it has failed. */
  const planAgain = async (id: string): Promise<Plan> => {
    try {
      return await planOf((await runs.get(id))!);
    } catch (error) {
      if (!isPassing(error)) await runs.setStatus(id, 'failed', (error as Error).message, Date.now());
      throw error;
    }
  };

  /** A database that went away in the middle could not be told that nobody trains the run: we are its owner, and do not. */
  const letGo = async (id: string) => {
    const run = await runs.get(id);
    if (run?.status === 'running' && run.owner === thisOwner())
      await runs.setStatus(id, 'paused', 'Interrupted: the database was away.', Date.now());
  };

  const carryOut = async (id: string, taken: Plan | null): Promise<void> => {
    const engine = await open();
    const places = runPlaces(artifacts, (await runs.get(id))!);
    try {
      if ((await stateOf(id))?.kind !== 'finished') {
        const plan = taken ?? (await planAgain(id));
        for await (const _ of train(id, {
          engine,
          store: runs,
          ...plan,
          ...places,
          model: id,
          signal,
          tracker,
          isTaken: taken !== null,
        }));
      }
      if ((await stateOf(id))?.lacksModel)
        await exportResult(id, modelFolder(home, id), { store: runs, engine, ...places });
    } finally {
      await unloadLeft(engine, id);
    }
  };

  /** Until the run has ended. What a stop of this process cut off, and a model that could not be written, is for the next. */
  const work = async (id: string, taken: Plan | null): Promise<void> => {
    for (let first = true; !signal.aborted; first = false) {
      try {
        if (!first) await letGo(id);
        await carryOut(id, first ? taken : null);
        return forget();
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error, run: id }, 'train: the run was cut off');
        if (!isPassing(error)) {
          const state = await stateOf(id).catch(() => null);
          return state?.lacksModel ? undefined : forget();
        }
        await sleep(againMs, undefined, { signal }).catch(() => {});
      }
    }
  };

  /** Takes the one place and the run, and gives the place back when the run has ended or could not be taken. */
  const inPlace = async <T extends { readonly run: RunRecord; readonly plan: Plan }>(
    what: string,
    ready: () => Promise<T>,
  ): Promise<T> => {
    if (signal.aborted) throw new ConflictError('Pawl is stopping; ask again when it is back.');
    if (busy !== null) throw new ConflictError(`${busy}. One is trained at a time: wait for it, or stop it first.`);
    busy = `${what} is being prepared`;
    try {
      const loops = (await runs.list(newest)).find(
        ({ status, owner }) => status === 'running' && owner === thisOwner(),
      );
      if (loops) throw new ConflictError(`Run ${loops.id} is under way. One is trained at a time: wait for it.`);
      const made = await ready();
      const { run, plan } = made;
      keep(run.id);
      if (run.status !== 'finished')
        await takeRun(runs, run.id, plan.stages, Date.now()).catch((error: unknown) => {
          forget();
          throw error;
        });
      const taken: RunRecord =
        run.status === 'finished' ? run : { ...run, status: 'running', reason: null, request: null };
      busy = `Run ${run.id} is under way`;
      working = work(run.id, plan).finally(() => {
        busy = null;
      });
      return { ...made, run: taken };
    } catch (error) {
      busy = null;
      throw error;
    }
  };

  const goOn = async (): Promise<void> => {
    const id = leftIn(leftPath);
    if (id === null || busy !== null) return;
    busy = `Run ${id} is under way`;
    try {
      const state = await stateOf(id);
      if (state?.kind !== 'open' && !state?.lacksModel) return forget();
      log.info({ run: id }, 'train: a run was interrupted, and goes on');
      await work(id, null);
    } catch (error) {
      log.warn({ err: error, run: id }, 'train: the run that was interrupted cannot go on now');
    } finally {
      busy = null;
    }
  };

  return {
    begin: (name, { id: wanted, by = 'api', ...asked }) =>
      inPlace('Another run', async () => {
        const agent = agentOf(config, name);
        const { spec, reasons, unused, overridden } = await specAsked({ store, artifacts, agent }, asked);
        const id = await nameRun(runs, spec.recipe, wanted, new Date());
        const here = await fetchMaterial(artifacts, spec);
        const engine = await open();
        const internal = await markFor({ store, artifacts, engine }, spec);
        const plan = await planRun(here.settings, here, engine, reader, agent);
        const kept = await keepMaterial(artifacts, spec);
        const fresh = { ...kept, id, folder: runFolder(artifacts, id), internal };
        const run = await createRun(auditedRuns(store, by), fresh, plan.stages, Date.now());
        await auditOverride(store, run, overridden, by);
        return { run, plan, reasons, unused };
      }),
    resume: async (id) => {
      const { run: resumed } = await inPlace(`Run ${id}`, async () => {
        const state = await stateOf(id);
        if (state === null) throw new NotFoundError(`There is no run ${id}.`);
        const { run, lacksModel } = state;
        const refusal = lacksModel ? null : claimRefusal(run, Date.now(), ownerAlive);
        if (refusal !== null) throw new ConflictError(refusal);
        return { run, plan: await planOf(run) };
      });
      return resumed;
    },
    goOn: () => {
      working = goOn();
    },
    async close() {
      stop.abort(new Error('Pawl is stopping.'));
      // What does not come to its safe point in time is left to the next start, as if the process had been killed.
      await Promise.race([working, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}

/** Trying the same again can help. */
const isPassing = (error: unknown): boolean => error instanceof StoreError && error.retryable;

/** An engine that is gone has nothing left. */
async function unloadLeft(engine: Engine, model: string): Promise<void> {
  const loaded = await engine.models().catch(() => []);
  if (loaded.some(({ name }) => name === model)) await engine.unload(model).catch(() => {});
}

/** The run that the file names; null: none, or nothing that can be read. */
function leftIn(path: string): string | null {
  try {
    return leftSchema.parse(JSON.parse(readFileSync(path, 'utf8'))).run;
  } catch {
    return null;
  }
}
