/** What the dashboard's pages ask, through /api, on a small database whose numbers can be checked by hand. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { outcome } from '../score/outcome.ts';
import { toolUse } from '../score/tool-use.ts';
import { weighted } from '../score/weighted.ts';
import { entry } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { postgresRunStore } from '../store/runs.ts';
import { saveRewardSpec, saveScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import type { KeptEpisode } from '../train/kept-episodes.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-pages-'));
const reward = weighted({ resolved: [1, outcome('resolved')], tools: [1, toolUse()] });
const now = Date.now();
const minute = 60_000;
let store: Store;
let api: Api;
let token = '';

const get = async (path: string) => {
  const answer = await api.request(path, { headers: { authorization: `Bearer ${token}` } });
  // biome-ignore lint/suspicious/noExplicitAny: each test says what it expects of it
  return { status: answer.status, body: (await answer.json()) as any };
};
const ids = async (query: string) =>
  (await get(`/api/trajectories?agent=desk${query}`)).body.trajectories.map(({ id }: { id: string }) => id);

/** c0 … c9, the later the higher its score; even ones are of type refund. */
beforeAll(async () => {
  store = await withStore();
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const config = parseConfig(
    {
      agents: [{ name: 'desk', reward, loop: { successWorth: 2 } }],
      upstreams: { default: { baseUrl: 'http://ann:pw@127.0.0.1:1/v1', key: 'sk-very-secret' } },
      alerts: { token: 'a-token-that-nobody-may-see-0123456789' },
    } as never,
    {},
    folder,
  );
  const artifacts = openArtifacts(config);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => null });
  const started = (n: number) => now - (20 - n) * minute;
  await writeEntries(
    store,
    Array.from({ length: 10 }, (_, n) =>
      entry.turn({
        ...{ trajectory: `c${n}`, startedAt: started(n), redactions: n < 3 ? { email: 2 } : {} },
        request: {
          model: 'small',
          metadata: { task_type: n % 2 === 0 ? 'refund' : 'order' },
          messages: [{ role: 'user', content: n === 4 ? 'Wo ist mein "Päckchen"?' : `Question ${n}` }],
        },
      }),
    ),
  );
  await writeEntries(store, [
    entry.signal({ identity: 'v1', target: { kind: 'trajectory', id: 'c1' }, value: 1, at: now, receivedAt: now }),
    entry.signal({ identity: 'v2', target: { kind: 'trajectory', id: 'c2' }, value: 0, at: now, receivedAt: now }),
  ]);
  await saveRewardSpec(store, { version: reward.version, parts: [], at: new Date(now) });
  const part = (value: number) => ({ value, weight: 1, reason: 'so' });
  await saveScores(
    store,
    Array.from({ length: 10 }, (_, n) => ({
      ...{
        agent: 'desk',
        trajectory: `c${n}`,
        day: new Date(started(n)).toISOString().slice(0, 10),
        spec: reward.version,
      },
      ...{
        evidence: 'e',
        total: n / 20,
        measured: 1,
        parts: { resolved: part(0), tools: part(n / 10) },
        turns: [],
        at: now,
      },
    })),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a list of conversations has score, vote and kind of task', async () => {
  const { trajectories } = (await get('/api/trajectories?agent=desk&limit=9')).body;
  expect(trajectories[0]).toMatchObject({ id: 'c9', score: 0.45, vote: null, taskType: 'order' });
  expect(trajectories[8]).toMatchObject({ id: 'c1', score: 0.05, vote: 1 });
});

test('conversations are found by score, vote, kind of task and words, page by page', async () => {
  expect(await ids('&minScore=0.4')).toEqual(['c9', 'c8']);
  expect(await ids('&maxScore=0.1')).toEqual(['c2', 'c1', 'c0']);
  expect(await ids('&vote=up')).toEqual(['c1']);
  expect(await ids('&vote=down')).toEqual(['c2']);
  expect(await ids('&taskType=refund&minScore=0.2')).toEqual(['c8', 'c6', 'c4']);
  expect(await ids('&text=question 7')).toEqual(['c7']);
  expect(await ids(`&text=${encodeURIComponent('"PÄCKCHEN"')}`)).toEqual(['c4']);
  expect(await ids('&text=nobody said this')).toEqual([]);
  const first = (await get('/api/trajectories?agent=desk&taskType=refund&limit=2')).body;
  expect(first.trajectories.map(({ id }: { id: string }) => id)).toEqual(['c8', 'c6']);
  expect(await ids(`&taskType=refund&limit=2&cursor=${first.next}`)).toEqual(['c4', 'c2']);
});

test('what became of a conversation is told from dataset to release', async () => {
  await store.pool.query(
    `insert into pawl.datasets (id, agent, version, created_at, since, until, spec, settings, seed, funnel, task_types, rows, hash, key)
     values ('desk-v1', 'desk', 1, now(), now(), now(), $1, '{}', 1, '[]', '{}', 1, 'h', 'k')`,
    [reward.version],
  );
  await store.pool.query(
    `insert into pawl.dataset_rows (dataset, position, agent, trajectory, day, score) values ('desk-v1', 3, 'desk', 'c9', now(), 0.45)`,
  );
  await postgresRunStore(store).create({
    ...{ id: 'sft-1', agent: 'desk', recipe: 'sft', settings: { dataset: 'desk-v1' }, base: 'b', folder: 'f', seed: 1 },
    ...{ steps: 4, step: 0, status: 'running', reason: null, budget: {}, spent: { seconds: 0, tokens: 0, money: 0 } },
    ...{ request: null, owner: null, internal: false, heartbeatAt: now, createdAt: now },
  });
  await store.pool.query(
    `insert into pawl.releases (id, agent, name, upstream, model, sampling, run, created_at)
     values ('rel-1', 'desk', 'v1', 'default', 'm', '{}', 'sft-1', now())`,
  );
  await store.pool.query(`insert into pawl.routes (agent, release, changed_at) values ('desk', 'rel-1', now())`);
  expect((await get('/api/trajectories/c9/lineage')).body).toEqual({
    datasets: [{ id: 'desk-v1', position: 3, score: 0.45 }],
    runs: [{ id: 'sft-1', status: 'running', dataset: 'desk-v1' }],
    releases: [{ name: 'v1', run: 'sft-1', serving: true }],
  });
  expect((await get('/api/trajectories/c1/lineage')).body).toEqual({ datasets: [], runs: [], releases: [] });
  expect((await get('/api/trajectories/nothing/lineage')).status).toBe(404);
});

test('the overview counts each stage, says what serves, and whether it is a go', async () => {
  const { status, body } = await get('/api/overview');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    agents: ['desk'],
    agent: 'desk',
    loop: { turn: null, stage: null, paused: false },
    stages: {
      conversations: { day: 10, week: 10 },
      traces: 10,
      signals: { feedback: 2 },
      scores: { week: 10 },
      datasets: { week: 1, newest: 'desk-v1', rows: 1 },
      runs: { week: 1, running: 1 },
    },
    serving: { name: 'v1', killed: false },
    go: { verdict: 'no-go', phase: { name: 'pilot' } },
    money: { cost: 0, savedPerWeek: 0, return: null },
  });
  expect(body.stages.scores.mean).toBeCloseTo(0.225);
  expect(body.go.checks[0]).toMatchObject({ name: 'conversations', value: 10, threshold: 2000, end: 'fail' });
  expect((await get('/api/overview?agent=nobody')).status).toBe(404);
});

test('scores are spread part by part, and other weights move them', async () => {
  const { body } = await get('/api/score/distribution');
  expect(body).toMatchObject({ sample: 10, total: { measured: 10 } });
  expect(body.parts.map(({ name, mean }: { name: string; mean: number }) => [name, mean])).toEqual([
    ['resolved', 0],
    ['tools', 0.45],
  ]);
  const what = (await get('/api/score/what-if?weights=resolved:0')).body;
  expect(what.current.mean).toBeCloseTo(0.225);
  expect(what.proposed.mean).toBeCloseTo(0.45);
  expect(what).toMatchObject({ minScore: 0.7, kept: { current: 0, proposed: 3, gained: 3, lost: 0 } });
  expect((await get('/api/score/what-if?weights=__proto__:1')).status).toBe(400);
  expect((await get('/api/score/what-if?weights=polite:1')).status).toBe(400); // no part of its reward
});

test('privacy is counted, values are never shown', async () => {
  await store.pool.query(
    `insert into pawl.consent (agent, user_id, given_at) values ('desk', 'h1', now()), ('desk', 'h2', now())`,
  );
  await store.pool.query(`update pawl.consent set withdrawn_at = now() + interval '1 s' where user_id = 'h2'`);
  expect((await get('/api/privacy')).body).toMatchObject({
    consent: { learn: { given: 1, withdrawn: 1 }, transfer: { given: 0, withdrawn: 0 } },
    masked: [{ type: 'email', count: 6 }],
    turns: 10,
    erasures: { open: 0, overdue: 0, next: null },
    holds: 0,
  });
});

test('settings are shown without a secret', async () => {
  const text = JSON.stringify((await get('/api/settings')).body);
  for (const secret of ['sk-very-secret', 'ann:pw', 'a-token-that-nobody', 'pawl_admin_'])
    expect(text).not.toContain(secret);
  expect(text).toContain('http://127.0.0.1:1/v1');
  expect(text).toContain('"key":"set"');
  expect(text).toContain('"successWorth":2');
});

test('a run’s curves are thinned out between its first step and its last', async () => {
  const runs = postgresRunStore(store);
  for (let step = 0; step < 11; step++)
    await runs.saveStep(
      'sft-1',
      { step, stage: 'sft', stageStep: step, values: { loss: step === 5 ? Number.NaN : 10 - step } },
      { seconds: step, tokens: 0, money: 0 },
      now,
    );
  const { steps, values } = (await get('/api/runs/sft-1/curves?points=3')).body;
  expect(steps).toEqual([0, 4, 8, 10]);
  expect(values).toEqual({ loss: [10, 6, 2, 0] });
  expect((await get('/api/runs/sft-1/curves')).body.values.loss[5]).toBeNull();
  expect((await get('/api/runs/none/curves')).status).toBe(404);
});

test('episodes of a run are of its newest step that has some, or of the step that is asked for', async () => {
  const runs = postgresRunStore(store);
  const spent = { seconds: 1, tokens: 0, money: 0 };
  const kept = (task: string, reward: number): KeptEpisode => ({
    ...{ task, taskType: 'refund', attempt: 0, reward, success: true, outcome: 'done', reasons: ['so'], leftOut: 0 },
    messages: [
      { role: 'user', text: 'Hello' },
      { role: 'assistant', text: '', calls: [{ name: 'look', input: '{}' }], reward: 0.5, reasons: ['found'] },
    ],
  });
  for (const [step, task] of ['first', 'second'].entries())
    await runs.saveStep('sft-1', { step, stage: 'grpo', stageStep: step, values: {} }, spent, now, [kept(task, step)]);
  await runs.saveStep('sft-1', { step: 2, stage: 'grpo', stageStep: 2, values: {} }, spent, now);
  const { body } = await get('/api/runs/sft-1/episodes');
  expect(body).toEqual({
    ...{ run: 'sft-1', step: 1, episodes: [kept('second', 1)] },
    steps: [
      { step: 0, task: 'first', taskType: 'refund', rewards: [0] },
      { step: 1, task: 'second', taskType: 'refund', rewards: [1] },
    ],
  });
  expect((await get('/api/runs/sft-1/episodes?step=0')).body.episodes).toEqual([kept('first', 0)]);
  expect((await get('/api/runs/sft-1/episodes?step=2')).body).toMatchObject({ step: 2, episodes: [] });
  expect((await get('/api/runs/none/episodes')).status).toBe(404);
  expect((await get('/api/runs/sft-1/episodes?step=-1')).status).toBe(400);
});

test('the cases of a report come worst for the candidate first', async () => {
  const task = (id: string, baseline: number | null, candidate: number | null) => ({
    id,
    type: 't',
    baseline,
    candidate,
  });
  await store.pool.query(
    `insert into pawl.reports (id, agent, baseline, candidate, suite, verdict, body, created_at)
     values ('r1', 'desk', 'a', 'b', 's', 'pass', $1, now())`,
    [
      JSON.stringify({
        tasks: [task('same', 1, 1), task('better', 0, 1), task('worse', 1, 0), task('unplayed', null, 1)],
      }),
    ],
  );
  const { cases, next } = (await get('/api/reports/r1/cases?differ=true')).body;
  expect(cases.map(({ id }: { id: string }) => id)).toEqual(['worse', 'unplayed', 'better']);
  expect(next).toBeNull();
});

test('comparisons in shadow are counted and listed, each with the conversation it belongs to', async () => {
  const parent = (await store.pool.query<{ id: string }>(`select id from pawl.turns where trajectory = 'c9'`)).rows[0]!
    .id;
  await store.pool.query(
    `insert into pawl.releases (id, agent, name, upstream, model, sampling, created_at) values ('rel-2', 'desk', 'v2', 'default', 'm', '{}', now())`,
  );
  await store.pool.query(
    `insert into pawl.rollouts (id, agent, baseline, candidate, phase, step, settings, reasons, version, created_at)
     values ('ro-1', 'desk', 'rel-1', 'rel-2', 'shadow', 0, '{"latencyRatio": 1.5, "latencySlackMs": 250}', '[]', 1, now())`,
  );
  await store.pool.query(
    `insert into pawl.shadows (id, parent, rollout, agent, at, failed, agreed, similarity, baseline_ms, candidate_ms)
     select gen_random_uuid(), $1, 'ro-1', 'desk', now() - n * interval '1 second', false, n > 1, 0.5, 100, 120 from generate_series(1, 3) n`,
    [parent],
  );
  const first = (await get('/api/rollouts/ro-1/shadows?limit=2')).body;
  expect(first).toMatchObject({ compared: 3, failed: 0, agreed: 2, similarity: 0.5 });
  expect(first.shadows[0]).toMatchObject({ trajectory: 'c9', agreed: false, baselineMs: 100, candidateMs: 120 });
  const second = (await get(`/api/rollouts/ro-1/shadows?limit=2&cursor=${first.next}`)).body;
  expect(second.shadows).toHaveLength(1);
  expect(second.next).toBeNull();
});

test('whoever listens hears that a run moved on', async () => {
  const answer = await api.request('/api/live', { headers: { authorization: `Bearer ${token}` } });
  expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const heard = async (what: string) => {
    while (!text.includes(what)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`The stream ended with ${text}`);
      text += value;
    }
  };
  await heard('"topic":"hello"');
  // The first look is what later ones are compared with: something changes until it is heard.
  const moving = setInterval(() => {
    void store.pool.query(`update pawl.runs set step = step + 1 where id = 'sft-1'`).catch(() => {});
  }, 200);
  await heard('"topic":"runs","id":"sft-1"').finally(() => clearInterval(moving));
  expect(text).toMatch(/^id: [0-9a-f]{12}-\d+$/m);
  await reader.cancel();
});
