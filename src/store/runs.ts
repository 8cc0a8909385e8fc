/** Training runs in Postgres. The shapes are train/run-record.ts's; this file only maps them to rows and back. */
import { type ColumnType, type Generated, type Selectable, sql } from 'kysely';
import type { KeptEpisode } from '../train/kept-episodes.ts';
import type { StepMetrics } from '../train/metrics.ts';
import type { RunCheckpoint, RunRecord, RunStatus, RunStore } from '../train/run-record.ts';
import { type Store, storeError } from './postgres.ts';
import { storable } from './storable.ts';
import { noteTraining } from './trained-days.ts';

type Json<T> = ColumnType<T, string, string>;

type RunTables = {
  runs: {
    id: string;
    agent: string;
    recipe: string;
    settings: Json<Record<string, unknown>>;
    base: string;
    folder: string;
    seed: number;
    steps: number;
    step: number;
    status: RunStatus;
    reason: string | null;
    budget: Json<RunRecord['budget']>;
    spent: Json<RunRecord['spent']>;
    request: RunRecord['request'];
    owner: string | null;
    heartbeat_at: Date;
    created_at: Date;
    internal: boolean;
  };
  run_steps: {
    run: string;
    step: number;
    stage: string;
    stage_step: number;
    values: Json<Record<string, number | string>>;
    task_types: Json<NonNullable<StepMetrics['taskTypes']>> | null;
  };
  run_episodes: {
    run: string;
    step: number;
    place: number;
    task: string;
    task_type: string;
    attempt: number;
    reward: number;
    success: boolean;
    body: Json<Pick<KeptEpisode, 'outcome' | 'reasons' | 'messages' | 'leftOut'>>;
  };
  run_checkpoints: {
    run: string;
    folder: string;
    step: number;
    kind: RunCheckpoint['kind'];
    stage: number;
    state: Json<unknown> | null;
    validation: number | null;
    created_at: Generated<Date>;
  };
};

/** In the transaction that there is, or in one of its own. */
const together = (db: Store['db'], work: (db: Store['db']) => Promise<void>): Promise<void> =>
  db.isTransaction ? work(db) : db.transaction().execute(work);

export function postgresRunStore(store: Store): RunStore {
  const db = store.db.withTables<RunTables>();
  const attempt = async <T>(doing: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw storeError(error, doing);
    }
  };
  return {
    create: (run) =>
      attempt(`Creating run ${run.id}`, () =>
        together(store.db, async (transaction) => {
          await transaction
            .withTables<RunTables>()
            .insertInto('runs')
            .values({
              id: run.id,
              agent: run.agent,
              recipe: run.recipe,
              settings: JSON.stringify(run.settings),
              base: run.base,
              folder: run.folder,
              seed: run.seed,
              steps: run.steps,
              step: run.step,
              status: run.status,
              reason: run.reason,
              budget: JSON.stringify(run.budget),
              spent: JSON.stringify(run.spent),
              request: run.request,
              owner: run.owner,
              heartbeat_at: new Date(run.heartbeatAt),
              created_at: new Date(run.createdAt),
              internal: run.internal,
            })
            .execute();
          const { dataset } = run.settings;
          if (typeof dataset === 'string') await noteTraining(transaction, dataset, new Date(run.createdAt));
        }),
      ),
    get: (id) =>
      attempt(`Reading run ${id}`, async () => {
        const row = await db.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirst();
        return row ? toRun(row) : null;
      }),
    list: (limit = 50) =>
      attempt('Listing runs', async () =>
        (
          await db.selectFrom('runs').selectAll().orderBy('created_at', 'desc').orderBy('id').limit(limit).execute()
        ).map(toRun),
      ),
    claim: (id, seen, owner, now) =>
      attempt(`Claiming run ${id}`, async () => {
        const { numUpdatedRows } = await db
          .updateTable('runs')
          .set({ owner, status: 'running', reason: null, request: null, heartbeat_at: new Date(now) })
          .where('id', '=', id)
          .where(sql<boolean>`owner is not distinct from ${seen.owner}`)
          .where(sql<boolean>`request is not distinct from ${seen.request}`)
          .executeTakeFirst();
        return numUpdatedRows === 1n;
      }),
    heartbeat: (id, now) =>
      attempt(`Marking run ${id} alive`, async () => {
        await db
          .updateTable('runs')
          .set({ heartbeat_at: new Date(now) })
          .where('id', '=', id)
          .execute();
      }),
    saveStep: (id, metrics, spent, now, episodes = []) =>
      attempt(`Saving step ${metrics.step} of run ${id}`, () =>
        db.transaction().execute(async (transaction) => {
          const row = {
            stage: metrics.stage,
            stage_step: metrics.stageStep,
            values: JSON.stringify(toJson(metrics.values)),
            task_types: metrics.taskTypes ? JSON.stringify(metrics.taskTypes) : null,
          };
          await transaction
            .insertInto('run_steps')
            .values({ run: id, step: metrics.step, ...row })
            .onConflict((conflict) => conflict.columns(['run', 'step']).doUpdateSet(row))
            .execute();
          await transaction.deleteFrom('run_episodes').where('run', '=', id).where('step', '=', metrics.step).execute();
          if (episodes.length > 0)
            await transaction
              .insertInto('run_episodes')
              .values(episodes.map((one, place) => toEpisodeRow(id, metrics.step, place, one)))
              .execute();
          const updated = await transaction
            .updateTable('runs')
            .set({ step: metrics.step + 1, spent: JSON.stringify(spent), heartbeat_at: new Date(now) })
            .where('id', '=', id)
            .returning('request')
            .executeTakeFirstOrThrow();
          return updated.request;
        }),
      ),
    setStatus: (id, status, reason, now) =>
      attempt(`Setting run ${id} to ${status}`, async () => {
        await db
          .updateTable('runs')
          .set({ status, reason, heartbeat_at: new Date(now), ...(status === 'running' ? {} : { owner: null }) })
          .where('id', '=', id)
          .execute();
      }),
    request: (id, request) =>
      attempt(`Asking run ${id} to ${request}`, async () => {
        await db.updateTable('runs').set({ request }).where('id', '=', id).execute();
      }),
    episodes: (id, step) =>
      attempt(`Reading the episodes of step ${step} of run ${id}`, async () =>
        (
          await db
            .selectFrom('run_episodes')
            .selectAll()
            .where('run', '=', id)
            .where('step', '=', step)
            .orderBy('place')
            .execute()
        ).map(({ task, task_type: taskType, attempt, reward, success, body }) => ({
          ...{ task, taskType, attempt, reward, success },
          ...body,
        })),
      ),
    episodeSteps: (id) =>
      attempt(`Reading which episodes of run ${id} were kept`, async () => {
        const rows = await db
          .selectFrom('run_episodes')
          .select(['step', 'task', 'task_type', 'reward'])
          .where('run', '=', id)
          .orderBy('step')
          .orderBy('place')
          .execute();
        const steps = new Map<number, { step: number; task: string; taskType: string; rewards: number[] }>();
        for (const { step, task, task_type: taskType, reward } of rows) {
          const known = steps.get(step);
          if (known === undefined) steps.set(step, { step, task, taskType, rewards: [reward] });
          else known.rewards.push(reward);
        }
        return [...steps.values()];
      }),
    metrics: (id, from = 0) =>
      attempt(`Reading the steps of run ${id}`, async () =>
        (
          await db
            .selectFrom('run_steps')
            .selectAll()
            .where('run', '=', id)
            .where('step', '>=', from)
            .orderBy('step')
            .execute()
        ).map(toMetrics),
      ),
    rewind: (id, step) =>
      attempt(`Rewinding run ${id}`, () =>
        db.transaction().execute(async (transaction) => {
          await transaction.deleteFrom('run_steps').where('run', '=', id).where('step', '>=', step).execute();
          await transaction.deleteFrom('run_episodes').where('run', '=', id).where('step', '>=', step).execute();
          await transaction.updateTable('runs').set({ step }).where('id', '=', id).execute();
        }),
      ),
    saveCheckpoint: (checkpoint) =>
      attempt(`Saving a checkpoint of run ${checkpoint.run}`, async () => {
        const { run, folder, step, kind, stage, state, validation } = checkpoint;
        const row = { step, kind, stage, state: JSON.stringify(state ?? null), validation };
        await db
          .insertInto('run_checkpoints')
          .values({ run, folder, ...row })
          .onConflict((conflict) => conflict.columns(['run', 'folder']).doUpdateSet(row))
          .execute();
      }),
    dropCheckpoint: (run, folder) =>
      attempt(`Dropping a checkpoint of run ${run}`, async () => {
        await db.deleteFrom('run_checkpoints').where('run', '=', run).where('folder', '=', folder).execute();
      }),
    checkpoints: (id) =>
      attempt(`Reading the checkpoints of run ${id}`, async () =>
        (
          await db
            .selectFrom('run_checkpoints')
            .selectAll()
            .where('run', '=', id)
            .orderBy('step')
            .orderBy('stage')
            .execute()
        ).map(({ run, folder, step, kind, stage, state, validation }) => ({
          run,
          folder,
          step,
          kind,
          stage,
          state,
          validation,
        })),
      ),
  };
}

function toRun(row: Selectable<RunTables['runs']>): RunRecord {
  const { heartbeat_at, created_at, ...rest } = row;
  return { ...rest, heartbeatAt: heartbeat_at.getTime(), createdAt: created_at.getTime() };
}

function toEpisodeRow(run: string, step: number, place: number, episode: KeptEpisode) {
  const { task, taskType: task_type, attempt, reward, success, outcome, reasons, messages, leftOut } = episode;
  // What a model wrote may hold what JSON takes and the database does not.
  const body: object = { outcome, reasons, messages, leftOut };
  return { ...{ run, step, place, task, task_type, attempt, reward, success }, body: storable(body) };
}

function toMetrics(row: Selectable<RunTables['run_steps']>): StepMetrics {
  return {
    step: row.step,
    stage: row.stage,
    stageStep: row.stage_step,
    values: Object.fromEntries(Object.entries(row.values).map(([name, value]) => [name, Number(value)])),
    ...(row.task_types ? { taskTypes: row.task_types } : {}),
  };
}

const toJson = (values: StepMetrics['values']) =>
  Object.fromEntries(Object.entries(values).map(([name, v]) => [name, Number.isFinite(v) ? v : String(v)]));
