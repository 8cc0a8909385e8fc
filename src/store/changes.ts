/**
 * What has changed, told by one cheap statement: for every topic a few records and a mark that differs when they do. Conversations and scores
 * come by the thousand, so for those the marks are the newest start and the server's own counters, which may be seconds behind.
 */
import { dayOf } from './partitions.ts';
import { type Store, storeError } from './postgres.ts';

export const topics = [
  ...['trajectories', 'scores', 'datasets', 'runs', 'reports', 'rollouts', 'releases', 'reviews', 'loop', 'audit'],
  'erasures',
] as const;
export type Topic = (typeof topics)[number];

/** By topic, id (empty: no single record) and mark. */
export type Marks = ReadonlyMap<Topic, ReadonlyMap<string, string>>;

const counters = (table: string) =>
  `select '' as id, sum(n_tup_ins + n_tup_upd + n_tup_del)::text as mark from pg_stat_all_tables
   where schemaname = 'pawl' and relname ${table === 'scores' ? `= 'scores'` : `like '${table}\\_%'`}`;

/** `$1`: no conversation that begins now lies in an earlier day. */
const statements: Readonly<Record<Topic, string>> = {
  trajectories: `select '' as id, concat((select string_agg(n.at::text, ' ') from unnest(array['production', 'exploration', 'simulation', 'evaluation', 'judge']) o(origin),
      lateral (select max(started_at) as at from pawl.trajectories where origin = o.origin and day >= $1::date) n), ' ', c.mark) as mark
    from (${counters('trajectories')}) c`,
  scores: counters('scores'),
  datasets: `(select id, coalesce(gone_at::text, '') as mark from pawl.datasets order by created_at desc limit 50)`,
  runs: `(select id, concat(step, ' ', status, ' ', request) as mark from pawl.runs order by created_at desc limit 50)`,
  reports: `(select id, created_at::text as mark from pawl.reports order by created_at desc limit 50)`,
  rollouts: `(select id, version::text as mark from pawl.rollouts order by created_at desc limit 50)`,
  releases: `(select id, '' as mark from pawl.releases order by created_at desc limit 50)
    union all select agent, concat(release, ' ', changed_at, ' ', killed) from pawl.routes`,
  reviews: `select '' as id, concat(max(picked_at), ' ', count(*)) as mark from pawl.review_items
    union all select 'labels', (select n::text from pawl.audit where event = 'conversation-reviewed' order by n desc limit 1)`,
  loop: `select agent as id, concat(number, ' ', array_length(done, 1), ' ', ended_at) as mark from (
      select distinct on (agent) agent, number, done, ended_at from pawl.loop_turns order by agent, number desc) t
    union all select agent, concat(paused_at, ' ', wanted, ' ', resumed_at) from pawl.loops
    union all select d ->> 'agent', concat(d ->> 'stage', ' ', d ->> 'share', ' ', d ->> 'text')
      from pawl.processes p, jsonb_array_elements(p.doing) d where p.seen_at > now() - interval '15 seconds'`,
  audit: `select '' as id, max(n)::text as mark from pawl.audit`,
  erasures: `(select id, concat(status, ' ', problem) as mark from pawl.erasures order by at desc limit 50)`,
};

const statement = topics
  .map((topic) => `select '${topic}' as topic, id, mark from (${statements[topic]}) ${topic}`)
  .join('\nunion all\n');

export const readMarks = async (store: Store, now: Date): Promise<Marks> => {
  const { rows } = await store.pool
    .query<{ topic: Topic; id: string; mark: string | null }>(statement, [dayOf(now.getTime() - 2 * 86_400_000)])
    .catch((error) => {
      throw storeError(error, 'Looking for what has changed');
    });
  const marks = new Map<Topic, Map<string, string>>(topics.map((topic) => [topic, new Map()]));
  for (const { topic, id, mark } of rows) {
    const of = marks.get(topic)!;
    of.set(id, `${of.get(id) ?? ''}|${mark ?? ''}`);
  }
  return marks;
};

export type Change = { readonly topic: Topic; readonly id: string | null };

/** What is new or other than before. A record that is no longer among the newest is no change. */
export function changesBetween(before: Marks, after: Marks): Change[] {
  return topics.flatMap((topic) => {
    const was = before.get(topic);
    return [...(after.get(topic) ?? [])]
      .filter(([id, mark]) => was?.get(id) !== mark)
      .map(([id]) => ({ topic, id: id === '' || id === 'labels' ? null : id }));
  });
}
