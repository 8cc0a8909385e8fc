/** Scores and reward specs in Postgres. The record is score/score.ts's; this file maps it to rows and back. */
import { type ColumnType, type Selectable, sql } from 'kysely';
import type { PartScore, Score, TurnScore } from '../score/score.ts';
import { type Store, storeError } from './postgres.ts';
import { storableJson } from './storable.ts';
import type { Day } from './tables.ts';
import { type Placed, placedKey } from './window.ts';

type Json<T> = ColumnType<T, string, string>;

type ScoreTables = {
  reward_specs: { version: string; parts: Json<unknown>; at: Date };
  scores: {
    trajectory: string;
    agent: string;
    day: Day;
    spec: string;
    evidence: string;
    total: number | null;
    measured: number;
    parts: Json<Record<string, PartScore>>;
    turns: Json<TurnScore[]>;
    at: Date;
  };
};

/** What the score of a single answer is kept under, in place of a trajectory: '/' is in no trajectory's id. */
export const answerName = (id: string): string => `answer/${id}`;

const scoreOfRow = ({ at, ...row }: Selectable<ScoreTables['scores']>): Score => ({ ...row, at: at.getTime() });

/** What a version of the reward spec says; writing the same one again changes nothing. */
export const saveRewardSpec = async (
  store: Store,
  spec: { readonly version: string; readonly parts: unknown; readonly at: Date },
): Promise<void> => {
  await store.db
    .withTables<ScoreTables>()
    .insertInto('reward_specs')
    .values({ version: spec.version, parts: JSON.stringify(spec.parts), at: spec.at })
    .onConflict((conflict) => conflict.column('version').doNothing())
    .execute()
    .catch((error) => {
      throw storeError(error, `Writing reward spec ${spec.version}`);
    });
};

/** Writes them all; where there is one for the same trajectory and spec, the new one takes its place. */
export const saveScores = async (store: Store, scores: readonly Score[]): Promise<void> => {
  if (scores.length === 0) return;
  await store.pool
    .query(
      `insert into pawl.scores (trajectory, agent, day, spec, evidence, total, measured, parts, turns, at)
       select trajectory, agent, day, spec, evidence, total, measured, parts, turns, to_timestamp(at / 1000)
       from json_to_recordset($1::json) as x(trajectory text, agent text, day date, spec text, evidence text,
         total double precision, measured double precision, parts jsonb, turns jsonb, at double precision)
       on conflict (trajectory, agent, day, spec) do update set evidence = excluded.evidence, total = excluded.total,
         measured = excluded.measured, parts = excluded.parts, turns = excluded.turns, at = excluded.at`,
      [storableJson(JSON.stringify(scores))],
    )
    .catch((error) => {
      throw storeError(error, 'Writing scores');
    });
};

/**
 * Only the trajectories may lead to an index. Of a reward or an agent that the server has not yet looked at it believes that there is
 * one score, and would go through all of them for every page: the square of a window that is scored for the first time.
 */
const scoresQuery = (store: Store, placed: readonly Placed[], spec: string) =>
  store.db
    .withTables<ScoreTables>()
    .selectFrom('scores')
    .selectAll()
    .where((where) => where('trajectory', '=', where.fn.any(where.val(placed.map(({ trajectory }) => trajectory.id)))))
    .where(sql<boolean>`agent || '' = ${placed[0]!.trajectory.agent}`)
    .where(sql<boolean>`spec || '' = ${spec}`);

/** For the test that looks at its plan. */
export const compiledScoresQuery = (...of: Parameters<typeof scoresQuery>) => scoresQuery(...of).compile();

/** The scores of these trajectories (all of one agent) under one spec, by `placedKey`. */
export const readScoresOf = async (
  store: Store,
  placed: readonly Placed[],
  spec: string,
): Promise<Map<string, Score>> => {
  if (placed.length === 0) return new Map();
  const rows = await scoresQuery(store, placed, spec)
    .execute()
    .catch((error) => {
      throw storeError(error, 'Reading scores');
    });
  const wanted = new Set(placed.map(placedKey));
  return new Map(
    rows.map((row) => [`${row.day} ${row.trajectory}`, scoreOfRow(row)] as const).filter(([key]) => wanted.has(key)),
  );
};

/** Every score of a trajectory, the latest first. */
export const listScores = async (store: Store, trajectory: string, agent?: string): Promise<Score[]> => {
  let query = store.db.withTables<ScoreTables>().selectFrom('scores').selectAll().where('trajectory', '=', trajectory);
  if (agent !== undefined) query = query.where('agent', '=', agent);
  const rows = await query
    .orderBy('at', 'desc')
    .orderBy('spec')
    .limit(100)
    .execute()
    .catch((error) => {
      throw storeError(error, `Reading the scores of trajectory ${trajectory}`);
    });
  return rows.map(scoreOfRow);
};

export type ScoreSummary = { readonly scored: number; readonly unmeasured: number; readonly mean: number | null };

/** Of trajectories whose day lies in [from, to]. */
export const summariseScores = async (
  store: Store,
  { agent, spec, from, to }: { agent: string; spec: string; from: Day; to: Day },
): Promise<ScoreSummary> => {
  const row = await store.db
    .withTables<ScoreTables>()
    .selectFrom('scores')
    .select([
      sql<number>`count(total)`.as('scored'),
      sql<number>`count(*) - count(total)`.as('unmeasured'),
      sql<number | null>`avg(total)`.as('mean'),
    ])
    .where('agent', '=', agent)
    .where('spec', '=', spec)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .where('trajectory', 'not like', answerName('%'))
    .executeTakeFirstOrThrow()
    .catch((error) => {
      throw storeError(error, `Summing up the scores of ${agent}`);
    });
  return row;
};
