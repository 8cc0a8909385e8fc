/**
 * How long the dashboard's pages wait for their data: a database of `--n` conversations (a million without it) over 30 days, one turn
 * and one score each, a vote and a verdict on every fifth, some scores of an older reward, labels, two datasets; then what every page asks, through /api as a browser with a session does, `--rounds` times.
 * `--home FOLDER` keeps the database there, and a second time with it fills nothing. Progress on stderr; the last line of stdout is one
 * JSON object: the slowest page at the median, what each took at its first look, and the compressed script that the first page loads,
 * where the dashboard is built.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { Agent } from '../src/agent.ts';
import { ensureAdminToken } from '../src/api/admin.ts';
import { createApi } from '../src/api/api.ts';
import type { Artifacts } from '../src/artifacts/artifacts.ts';
import { openArtifacts } from '../src/artifacts/open.ts';
import { settledPii } from '../src/collect/redact/settings.ts';
import { type Config, parseConfig } from '../src/config.ts';
import { curateWindow } from '../src/curate/run.ts';
import { outcome } from '../src/score/outcome.ts';
import { scoreWindow } from '../src/score/run.ts';
import { toolUse } from '../src/score/tool-use.ts';
import { weighted } from '../src/score/weighted.ts';
import { dayOf, ensurePartitions } from '../src/store/partitions.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { saveRewardSpec } from '../src/store/scores.ts';

const { values } = parseArgs({
  options: {
    n: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '9' },
    home: { type: 'string' },
  },
});
const n = Number(values.n);
const rounds = Number(values.rounds);
if (!Number.isInteger(n) || n < 1_000) throw new Error(`--n ${values.n} must be a whole number from 1000 on.`);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`--rounds ${values.rounds} must be a whole number from 1 on.`);

const days = 30;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const now = Date.now();
const reward = weighted({ resolved: [0.7, outcome('resolved')], tools: [0.3, toolUse()] });
const say = (text: string) => console.error(`${((Date.now() - now) / 1000).toFixed(1)} s  ${text}`);

/** A reward from before this one, under which some have scores too. */
const older = 'an-older-reward';
/** What users write of, so that no two say the same. */
const words = [
  'order',
  'box',
  'street',
  'monday',
  'friend',
  'blue',
  'broken',
  'twice',
  'bill',
  'card',
  'door',
  'late',
  'gift',
  'shoe',
  'size',
  'shop',
]
  .map((word) => `'${word}'`)
  .join(', ');

/** Rows $1 … $2 of $3, the first the oldest: made by the server, so that a million takes minutes. */
const made = `
with made as materialized (
  select i, 'conversation-' || i as id, $4::timestamptz + (i::double precision / $3) * interval '${days} days' as at,
    md5(i::text)::uuid as turn from generate_series($1::integer, $2::integer) i
)`;
const fills = [
  `${made} insert into pawl.trajectories (id, agent, day, user_id, origin, consent, started_at, ended_at, turns, errors, prompt_tokens,
     completion_tokens, latency_ms, release, release_at)
   select id, 'desk', (at at time zone 'UTC')::date, 'u_' || lpad((i % 20000)::text, 27, '0'), case when i % 50 = 0 then 'simulation' else 'production' end,
     'given', at, at + interval '2 seconds', 1, (i % 100 = 0)::integer, 400, 60, 900 + i % 700, 'release-' || i * 5 / $3, at from made`,
  `${made} insert into pawl.turns (id, day, agent, trajectory, user_id, origin, endpoint, keys, started_at, latency_ms, upstream, release,
     model, status, http_status, attempts, stream, prompt_tokens, completion_tokens, request, choices, redactions, task_type, client_key)
   select turn, (at at time zone 'UTC')::date, 'desk', id, 'u_' || lpad((i % 20000)::text, 27, '0'), 'production', 'chat', '{}', at, 900, 'local',
     'release-' || i * 5 / $3, 'm', case when i % 100 = 0 then 'error' else 'ok' end, 200, 1, false, 400, 60,
     jsonb_build_object('messages', jsonb_build_array(jsonb_build_object('role', 'user', 'content', 'Where is parcel ' || i || '? ' ||
       (select string_agg((array[${words}])[1 + ('x' || substr(md5(i::text), k, 1))::bit(4)::integer], ' ') from generate_series(1, 24) k)))),
     '[{"index": 0, "finishReason": "stop", "message": {"role": "assistant", "content": "It left our warehouse and should arrive within two working days."}}]',
     case when i % 7 = 0 then '{"email": 1}'::jsonb else '{}'::jsonb end, (array['refund', 'order', 'invoice', 'login', 'other'])[1 + i % 5],
     (array['app', 'web', 'mail'])[1 + i % 3] from made`,
  `${made} insert into pawl.scores (trajectory, agent, day, spec, evidence, total, measured, parts, turns, at)
   select id, 'desk', (at at time zone 'UTC')::date, '${reward.version}', 'e', (i % 100) / 100.0, 1,
     jsonb_build_object('resolved', jsonb_build_object('value', (i % 100) / 100.0, 'weight', 0.7, 'reason', 'The ticket was closed.'),
       'tools', jsonb_build_object('value', 1, 'weight', 0.3, 'reason', 'Every call was valid.')), '[]', at from made`,
  `${made} insert into pawl.signals (agent, identity, id, target_kind, target_id, kind, name, value, at, received_at)
   select 'desk', 'vote/' || id, turn, 'trajectory', id, 'feedback', 'vote', i % 2, at, at from made where i % 5 = 0`,
  `${made} insert into pawl.signals (agent, identity, id, target_kind, target_id, kind, name, value, user_id, at, received_at)
   select 'desk', 'label/' || id, turn, 'trajectory', id, 'label', 'score', (i % 100) / 100.0, 'ann', at, at from made where i % 500 = 0`,
  `${made} insert into pawl.signals (agent, identity, id, target_kind, target_id, kind, name, value, at, received_at)
   select 'desk', 'resolved/' || id, turn, 'trajectory', id, 'outcome', 'resolved', (i % 10 < 7)::integer, at, at from made
   where i > $3 - $3 / ${2 * days}`,
  `${made} insert into pawl.scores (trajectory, agent, day, spec, evidence, total, measured, parts, turns, at)
   select id, 'desk', (at at time zone 'UTC')::date, '${older}', 'e', (i % 100) / 100.0, 1,
     jsonb_build_object('resolved', jsonb_build_object('value', (i % 100) / 100.0, 'weight', 1, 'reason', 'The ticket was closed.')), '[]', at
   from made where i % 10 = 0`,
  `${made} insert into pawl.verdicts (key, agent, trajectory, day, prompt, model, value, reason, failures, at)
   select md5(id), 'desk', id, (at at time zone 'UTC')::date, 'tone', 'judge', 0.5, 'It was polite.', 0, at from made where i % 5 = 1`,
  `${made} insert into pawl.review_items (agent, trajectory, why, reward, feedback, picked_at)
   select 'desk', id, 'random', (i % 100) / 100.0, null, at from made where i % 100 = 0 and i > $3 * 3 / 4`,
];

async function seed(store: Store, artifacts: Artifacts, config: Config): Promise<void> {
  const from = new Date(now - days * dayMs);
  await ensurePartitions(
    store,
    Array.from({ length: days + 2 }, (_, i) => dayOf(from.getTime() + i * dayMs)),
  );
  for (const version of [reward.version, older]) await saveRewardSpec(store, { version, parts: [], at: from });
  const chunk = 50_000;
  for (let first = 1; first <= n; first += chunk) {
    const last = Math.min(n, first + chunk - 1);
    for (const fill of fills) await store.pool.query(fill, [first, last, n, from]);
    say(`${last} of ${n} conversations`);
  }
  await store.pool.query(
    `insert into pawl.runs (id, agent, recipe, settings, base, folder, seed, steps, step, status, budget, spent, heartbeat_at, created_at)
     values ('grpo-1', 'desk', 'grpo', '{"dataset": "desk-v1"}', 'b', 'f', 1, 5000, 5000, 'finished', '{}', '{"seconds": 1, "tokens": 1, "money": 1}', now(), now())`,
  );
  await store.pool.query(
    `insert into pawl.run_steps (run, step, stage, stage_step, "values")
     select 'grpo-1', i, 'grpo', i, jsonb_build_object('reward_mean', i / 5000.0, 'loss', 1, 'kl', 0.01, 'entropy', 1.2) from generate_series(0, 4999) i`,
  );
  await store.pool.query(
    `insert into pawl.consent (agent, user_id, given_at) select 'desk', 'u_' || lpad(i::text, 27, '0'), $1 from generate_series(0, 20000) i`,
    [from],
  );
  say('gathering what a server gathers by itself: statistics and visibility');
  await store.pool.query('vacuum (analyze)');
  const [{ name: agent, curate, pii }] = config.agents as [Agent];
  const settings = { ...curate, kAnonymity: 1, maxUserShare: 1 };
  for (const hoursAgo of [12, 6]) {
    const since = new Date(now - hoursAgo * hourMs);
    const window = { agent, spec: reward, since, until: new Date(since.getTime() + 6 * hourMs), now: new Date() };
    await scoreWindow(store, window);
    const made = await curateWindow(store, artifacts, {
      ...{ ...window, settings, pii: settledPii(pii), seed: 1, refuseEmpty: true },
    });
    say(`${made.id}: ${made.rows} rows`);
  }
}

const home = values.home === undefined ? mkdtempSync(join(tmpdir(), 'pawl-bench-dashboard-')) : resolve(values.home);
const store = await openStore({ home, volatile: true, poolSize: 10 });
try {
  const config = parseConfig({ agents: [{ name: 'desk', reward }] }, {}, home);
  const artifacts = openArtifacts({ home });
  const held = await store.pool.query<{ n: number }>('select count(*)::integer as n from pawl.trajectories');
  if (held.rows[0]!.n === 0) await seed(store, artifacts, config);
  else if (held.rows[0]!.n !== n)
    throw new Error(`${home} holds ${held.rows[0]!.n} conversations where ${n} are meant (--n).`);
  const token = randomBytes(32).toString('base64url');
  const adminHash = await ensureAdminToken(home, async () => {}, token);
  const secret = 's'.repeat(32);
  const api = createApi({ store, artifacts, config, secret, adminHash, recorder: () => null });
  const base = 'http://localhost:4700';
  const login = await api.request(`${base}/api/session`, {
    method: 'POST',
    headers: { host: 'localhost:4700', 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  const headers = { host: 'localhost:4700', cookie: login.headers.get('set-cookie')!.split(';')[0]! };
  const middle = `conversation-${Math.floor(n / 2)}`;

  /** What each page asks as it opens, and what its filters ask. */
  const pages: Readonly<Record<string, readonly string[]>> = {
    overview: ['/api/overview', '/api/overview?agent=desk'],
    collect: ['/api/trajectories?agent=desk&limit=100'],
    'collect by user': [`/api/trajectories?agent=desk&user=u_${'7'.padStart(27, '0')}&hashed=true`],
    'collect by release': ['/api/trajectories?agent=desk&release=release-2'],
    'collect errors': ['/api/trajectories?agent=desk&errors=true'],
    'collect low scores': ['/api/trajectories?agent=desk&maxScore=0.1'],
    'collect rare scores': ['/api/trajectories?agent=desk&minScore=0.999'],
    'collect down votes': ['/api/trajectories?agent=desk&vote=down'],
    'collect task type': ['/api/trajectories?agent=desk&taskType=refund'],
    'collect words': ['/api/trajectories?agent=desk&text=nobody%20said%20this'],
    trajectory: [
      `/api/trajectories/${middle}?agent=desk&limit=50`,
      `/api/trajectories/${middle}/scores?agent=desk`,
      `/api/trajectories/${middle}/lineage?agent=desk`,
    ],
    score: [
      '/api/score/distribution?agent=desk',
      '/api/reward?agent=desk',
      '/api/trajectories?agent=desk&minScore=0&limit=12',
      '/api/reward/versions?agent=desk',
      `/api/reward/compare?agent=desk&a=${older}&b=${reward.version}`,
      '/api/judge?days=30',
    ],
    'what if': ['/api/score/what-if?agent=desk&weights=resolved:1,tools:0.5'],
    curate: [
      '/api/datasets?agent=desk&limit=100',
      '/api/shifts?agent=desk',
      '/api/privacy?agent=desk',
      '/api/erasures?limit=50',
    ],
    dataset: ['/api/datasets/desk-v2', '/api/datasets/desk-v2/check', '/api/datasets/desk-v1/diff?with=desk-v2'],
    train: ['/api/runs?limit=200', '/api/train/advice?agent=desk', '/api/datasets?agent=desk&limit=50'],
    run: ['/api/runs/grpo-1?last=1', '/api/runs/grpo-1/curves?points=500'],
    evaluate: ['/api/reports?agent=desk&limit=100', '/api/releases?agent=desk&limit=100'],
    deploy: ['/api/rollouts?agent=desk&limit=200', '/api/releases?agent=desk&limit=200'],
    review: ['/api/review?agent=desk&limit=200'],
    settings: ['/api/settings', '/api/keys', '/api/access', '/api/status'],
    audit: ['/api/audit?limit=100'],
  };
  // Nobody has looked yet: what is kept (store/figures.ts) is counted at the first look, or by a worker's hourly job.
  await store.pool.query('delete from pawl.figures');
  const firsts: Record<string, number> = {};
  const medians: Record<string, number> = {};
  for (const [page, paths] of Object.entries(pages)) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const begun = performance.now();
      const answers = await Promise.all(paths.map((path) => api.request(base + path, { headers })));
      for (const [i, answer] of answers.entries()) {
        const text = await answer.text();
        if (answer.status !== 200) throw new Error(`${paths[i]} answered ${answer.status}: ${text.slice(0, 300)}`);
      }
      times.push(performance.now() - begun);
    }
    medians[page] = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;
    firsts[page] = times[0]!;
    say(`${page}: ${medians[page].toFixed(0)} ms, ${firsts[page].toFixed(0)} ms at the first look`);
  }

  const [slowest] = Object.entries(medians).toSorted(([, a], [, b]) => b - a);
  const round = (ms: number) => Math.round(ms * 10) / 10;
  console.log(
    JSON.stringify({
      ...{ n, slowest_page: slowest![0], slowest_ms: round(slowest![1]), script_kb: scriptKb() },
      first_look_ms: Object.fromEntries(Object.entries(firsts).map(([page, ms]) => [page, round(ms)])),
      pages_ms: Object.fromEntries(Object.entries(medians).map(([page, ms]) => [page, round(ms)])),
    }),
  );
} finally {
  await store.close();
  if (values.home === undefined) rmSync(home, { recursive: true, force: true });
}

/** Compressed, of what index.html loads; null: the dashboard is not built here (`npm run build`). */
function scriptKb(): number | null {
  const folder = new URL('../dist/dashboard/', import.meta.url);
  if (!existsSync(new URL('index.html', folder))) return null;
  const index = readFileSync(new URL('index.html', folder), 'utf8');
  const names = readdirSync(new URL('assets/', folder)).filter((name) => name.endsWith('.js') && index.includes(name));
  const bytes = names.reduce((sum, name) => sum + gzipSync(readFileSync(new URL(`assets/${name}`, folder))).length, 0);
  return Math.round(bytes / 102.4) / 10;
}
