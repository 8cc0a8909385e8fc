/**
 * How long the dashboard's pages wait for their data: a database of `--n` conversations (a million without it) over 30 days, one turn
 * and one score each, a vote on every fifth; then what every page asks, through /api as a browser with a session does, `--rounds` times.
 * Progress on stderr; the last line of stdout is one JSON object: the slowest page at the median, and the compressed script that
 * the first page loads, where the dashboard is built.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { ensureAdminToken } from '../src/api/admin.ts';
import { createApi } from '../src/api/api.ts';
import { openArtifacts } from '../src/artifacts/open.ts';
import { parseConfig } from '../src/config.ts';
import { outcome } from '../src/score/outcome.ts';
import { toolUse } from '../src/score/tool-use.ts';
import { weighted } from '../src/score/weighted.ts';
import { dayOf, ensurePartitions } from '../src/store/partitions.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { saveRewardSpec } from '../src/store/scores.ts';

const { values } = parseArgs({
  options: { n: { type: 'string', default: '1000000' }, rounds: { type: 'string', default: '9' } },
});
const n = Number(values.n);
const rounds = Number(values.rounds);
if (!Number.isInteger(n) || n < 1_000) throw new Error(`--n ${values.n} must be a whole number from 1000 on.`);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`--rounds ${values.rounds} must be a whole number from 1 on.`);

const days = 30;
const dayMs = 86_400_000;
const now = Date.now();
const reward = weighted({ resolved: [0.7, outcome('resolved')], tools: [0.3, toolUse()] });
const say = (text: string) => console.error(`${((Date.now() - now) / 1000).toFixed(1)} s  ${text}`);

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
     model, status, http_status, attempts, stream, prompt_tokens, completion_tokens, request, choices, redactions, task_type)
   select turn, (at at time zone 'UTC')::date, 'desk', id, 'u_' || lpad((i % 20000)::text, 27, '0'), 'production', 'chat', '{}', at, 900, 'local',
     'release-' || i * 5 / $3, 'm', case when i % 100 = 0 then 'error' else 'ok' end, 200, 1, false, 400, 60,
     jsonb_build_object('messages', jsonb_build_array(jsonb_build_object('role', 'user', 'content', 'Where is parcel ' || i || '? ' || repeat('It was sent on monday. ', 8)))),
     '[{"index": 0, "message": {"role": "assistant", "content": "It left our warehouse and should arrive within two working days."}}]',
     case when i % 7 = 0 then '{"email": 1}'::jsonb else '{}'::jsonb end, (array['refund', 'order', 'invoice', 'login', 'other'])[1 + i % 5] from made`,
  `${made} insert into pawl.scores (trajectory, agent, day, spec, evidence, total, measured, parts, turns, at)
   select id, 'desk', (at at time zone 'UTC')::date, '${reward.version}', 'e', (i % 100) / 100.0, 1,
     jsonb_build_object('resolved', jsonb_build_object('value', (i % 100) / 100.0, 'weight', 0.7, 'reason', 'The ticket was closed.'),
       'tools', jsonb_build_object('value', 1, 'weight', 0.3, 'reason', 'Every call was valid.')), '[]', at from made`,
  `${made} insert into pawl.signals (agent, identity, id, target_kind, target_id, kind, name, value, at, received_at)
   select 'desk', 'vote/' || id, turn, 'trajectory', id, 'feedback', 'vote', i % 2, at, at from made where i % 5 = 0`,
];

async function seed(store: Store): Promise<void> {
  const from = new Date(now - days * dayMs);
  await ensurePartitions(
    store,
    Array.from({ length: days + 2 }, (_, i) => dayOf(from.getTime() + i * dayMs)),
  );
  await saveRewardSpec(store, { version: reward.version, parts: [], at: from });
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
    `insert into pawl.datasets (id, agent, version, created_at, since, until, spec, settings, seed, funnel, task_types, rows, hash, key)
     values ('desk-v1', 'desk', 1, now(), now(), now(), $1, '{}', 1, '[]', '{}', 50000, 'h', 'k')`,
    [reward.version],
  );
  await store.pool.query(
    `insert into pawl.dataset_rows (dataset, position, agent, trajectory, day, score)
     select 'desk-v1', i, 'desk', 'conversation-' || i, now(), 0.9 from generate_series(1, least($1, 50000)) i`,
    [n],
  );
  await store.pool.query(
    `insert into pawl.consent (agent, user_id, given_at) select 'desk', 'u_' || lpad(i::text, 27, '0'), now() from generate_series(1, 20000) i`,
  );
  say('gathering what a server gathers by itself: statistics and visibility');
  await store.pool.query('vacuum (analyze)');
}

const home = mkdtempSync(join(tmpdir(), 'pawl-bench-dashboard-'));
const store = await openStore({ home, volatile: true, poolSize: 10 });
try {
  await seed(store);
  let token = '';
  const adminHash = await ensureAdminToken(home, async (shown) => {
    token = shown;
  });
  const config = parseConfig({ agents: [{ name: 'desk', reward }] }, {}, home);
  const secret = 's'.repeat(32);
  const api = createApi({ store, artifacts: openArtifacts(config), config, secret, adminHash, recorder: () => null });
  const base = 'http://localhost:4700';
  const login = await api.request(`${base}/api/session`, {
    method: 'POST',
    headers: { host: 'localhost:4700', 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  const headers = { host: 'localhost:4700', cookie: login.headers.get('set-cookie')!.split(';')[0]! };
  const middle = `conversation-${Math.floor(n / 2)}`;

  /** What each page asks before it shows anything, and what its filters ask. */
  const pages: Readonly<Record<string, readonly string[]>> = {
    overview: ['/api/overview?agent=desk'],
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
      `/api/trajectories/${middle}`,
      `/api/trajectories/${middle}/scores`,
      `/api/trajectories/${middle}/lineage`,
    ],
    score: ['/api/score/distribution?agent=desk'],
    'what if': ['/api/score/what-if?agent=desk&weights=resolved:1,tools:0.5'],
    curate: ['/api/datasets?agent=desk', '/api/privacy?agent=desk', '/api/erasures'],
    train: ['/api/runs'],
    run: ['/api/runs/grpo-1?last=50', '/api/runs/grpo-1/curves'],
    evaluate: ['/api/reports?agent=desk'],
    deploy: ['/api/rollouts?agent=desk', '/api/releases?agent=desk'],
    review: ['/api/review?agent=desk'],
    settings: ['/api/settings', '/api/keys', '/api/access', '/api/status'],
    audit: ['/api/audit'],
  };
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
    say(`${page}: ${medians[page].toFixed(0)} ms`);
  }

  const [slowest] = Object.entries(medians).toSorted(([, a], [, b]) => b - a);
  const round = (ms: number) => Math.round(ms * 10) / 10;
  console.log(
    JSON.stringify({
      ...{ n, slowest_page: slowest![0], slowest_ms: round(slowest![1]), script_kb: scriptKb() },
      pages_ms: Object.fromEntries(Object.entries(medians).map(([page, ms]) => [page, round(ms)])),
    }),
  );
} finally {
  await store.close();
  rmSync(home, { recursive: true, force: true });
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
