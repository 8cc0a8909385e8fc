/**
 * What users wrote first, by language and length, kept with each conversation, so that measuring does not read it again. Found when a
 * release is measured and not when a turn is recorded: telling a language takes longer than writing the turn.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Turn } from '../collect/turn.ts';
import type { Window } from './measures.ts';
import { type Store, storeError } from './postgres.ts';
import { type TurnRow, turnsOf } from './turns.ts';

export type FirstWords = { readonly language: string | null; readonly chars: number };

const atOnce = 200;
/** Of one look; a later one goes on. */
const most = 20_000;
/** What is larger is not read for this: it is long. */
const mostBytes = 1024 * 1024;

/** A trajectory's day is that of its first turn to arrive, at most a week after it started. */
const weekBeyond = `between ($3::timestamptz at time zone 'UTC')::date and ($4::timestamptz at time zone 'UTC')::date + 7`;

const unseen = `
select t.id as "of", t.day::text as "ofDay", first.id as turn, first.day::text as day, coalesce(first.content_bytes, 0) as bytes
from pawl.trajectories t, lateral (
  select x.id, x.day, x.content_bytes from pawl.turns x
  where x.trajectory = t.id and x.agent = $1 and x.day ${weekBeyond} order by x.started_at limit 1
) first
where t.agent = $1 and t.release = $2 and t.origin = $5 and t.day ${weekBeyond} and t.first_chars is null
  and t.started_at >= $3::timestamptz and t.started_at < $4::timestamptz
limit ${most}`;

/** Whoever writes to a conversation at the moment is not waited for, so that none of the two can wait for the other. */
const note = `
with found as (
  select t.id, t.agent, t.day, x.language, x.chars
  from unnest($2::text[], $3::date[], $4::text[], $5::integer[]) as x(id, day, language, chars)
  join pawl.trajectories t on t.agent = $1 and t.id = x.id and t.day = x.day for update of t skip locked
)
update pawl.trajectories t set first_language = f.language, first_chars = f.chars
from found f where t.id = f.id and t.agent = f.agent and t.day = f.day`;

type Unseen = {
  readonly of: string;
  readonly ofDay: string;
  readonly turn: string;
  readonly day: string;
  readonly bytes: number;
};

const tries = 5;
const pauseMs = 100;

/** Looks at the conversations of the window whose first words nobody has looked at. */
export async function noteFirstWords(store: Store, window: Window, read: (turn: Turn) => FirstWords): Promise<void> {
  const { agent, release, since, until, origin } = window;
  try {
    for (let left = tries; left > 0; left--) {
      const { rows } = await store.pool.query<Unseen>(unseen, [
        agent,
        release,
        new Date(since),
        new Date(until),
        origin,
      ]);
      let noted = 0;
      for (let at = 0; at < rows.length; at += atOnce)
        noted += await noteSome(store, agent, rows.slice(at, at + atOnce), read);
      if (noted === rows.length) return;
      await sleep(pauseMs);
    }
  } catch (error) {
    throw storeError(error, `Looking at what users of release ${release} wrote first`);
  }
}

async function noteSome(
  store: Store,
  agent: string,
  some: readonly Unseen[],
  read: (turn: Turn) => FirstWords,
): Promise<number> {
  const short = some.filter(({ bytes }) => bytes <= mostBytes);
  const { rows } = await store.pool.query<TurnRow>(
    `select x.* from unnest($1::uuid[], $2::date[]) as f(id, day), lateral (
       select * from pawl.turns t where t.id = f.id and t.day = f.day limit 1) x`,
    [short.map(({ turn }) => turn), short.map(({ day }) => day)],
  );
  const turns = new Map((await turnsOf(store, rows)).map((turn) => [turn.id, turn]));
  const found = some.map(({ turn, bytes }): FirstWords => {
    const first = turns.get(turn);
    return first === undefined ? { language: null, chars: bytes } : read(first);
  });
  const { rowCount } = await store.pool.query(note, [
    agent,
    some.map(({ of }) => of),
    some.map(({ ofDay }) => ofDay),
    found.map(({ language }) => language),
    found.map(({ chars }) => chars),
  ]);
  return rowCount ?? 0;
}
