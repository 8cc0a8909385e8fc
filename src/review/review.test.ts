/** Who is asked about what, what they say, and what becomes of it; on a real database. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureAdminToken } from '../api/admin.ts';
import { type Api, createApi } from '../api/api.ts';
import { openArtifacts } from '../artifacts/open.ts';
import { parseConfig } from '../config.ts';
import { position } from '../deploy/assign.ts';
import { createRelease, serveRelease, startRollout } from '../deploy/reconcile.ts';
import { scoreWindow } from '../score/run.ts';
import { readAudit } from '../store/audit.ts';
import { readCorrections } from '../store/corrections.ts';
import { entry, noon } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { cohensKappa } from './kappa.ts';
import { pickForReview } from './pick.ts';

describe('picking', () => {
  const scored = Array.from({ length: 1000 }, (_, i) => ({
    ...{ trajectory: `case-${i}`, reward: 0.9, feedback: i < 30 ? i / 100 : 0.9 },
  }));

  it('takes half at random and half where reward and feedback differ most, none twice', () => {
    const picked = pickForReview('desk', scored, 0.02);
    const why = (of: string) => picked.filter((one) => one.why === of).map(({ trajectory }) => trajectory);
    expect(why('random').length).toBeGreaterThan(3);
    expect(why('random').length).toBeLessThan(20);
    expect(why('disagreement')).toHaveLength(10);
    const left = scored.slice(0, 30).filter(({ trajectory }) => !why('random').includes(trajectory));
    expect(why('disagreement')).toEqual(left.slice(0, 10).map(({ trajectory }) => trajectory));
    expect(new Set(picked.map(({ trajectory }) => trajectory)).size).toBe(picked.length);
  });

  it('takes the same at random whoever else is there, and nobody where all agree or the share is 0', () => {
    const random = (of: typeof scored) => pickForReview('desk', of, 0.2).filter(({ why }) => why === 'random');
    const half = random(scored.slice(0, 500));
    expect(random(scored).slice(0, half.length)).toEqual(half);
    expect(pickForReview('desk', scored.slice(30), 0.02).every(({ why }) => why === 'random')).toBe(true);
    expect(pickForReview('desk', scored, 0)).toEqual([]);
  });
});

describe('Cohen’s κ', () => {
  const of = (...pairs: [number, number][]) =>
    cohensKappa(
      pairs.flatMap(([a, b], i) => [
        { trajectory: `t${i}`, reviewer: 'ann', score: a },
        { trajectory: `t${i}`, reviewer: 'bob', score: b },
      ]),
    );

  it('is 1 for people who always agree, 0 for those who agree as chance would', () => {
    expect(of([1, 1], [0, 0])).toEqual({ both: 2, kappa: 1 });
    expect(of([1, 1], [1, 0], [0, 1], [0, 0])).toEqual({ both: 4, kappa: 0 });
    // 35 of 50 agree, 0.7; 25/50 · 30/50 + 25/50 · 20/50 = 0.5 by chance: (0.7 − 0.5) / 0.5.
    const textbook: [number, number][] = [
      ...Array(20).fill([1, 1]),
      ...Array(5).fill([1, 0]),
      ...Array(10).fill([0, 1]),
      ...Array(15).fill([0, 0]),
    ];
    expect(of(...textbook).kappa).toBeCloseTo(0.4);
  });

  it('cannot be told where nobody looked at the same, or everything was good', () => {
    expect(cohensKappa([{ trajectory: 't', reviewer: 'ann', score: 1 }])).toEqual({ both: 0, kappa: null });
    expect(of([1, 1])).toEqual({ both: 1, kappa: null });
  });
});

describe('the queue', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-review-'));
  const config = parseConfig({ agents: [{ name: 'desk', review: { share: 1, reviewers: 2 } }] }, {}, folder);
  const [agent] = config.agents;
  // Two that the hash takes.
  const [a, b] = Array.from({ length: 20 }, (_, i) => `case-${String(i).padStart(2, '0')}`).filter(
    (id) => position('review desk', id) < 0.5,
  ) as [string, string];
  let store: Store;
  let api: Api;
  let token = '';
  beforeAll(async () => {
    store = await withStore();
    const adminHash = await ensureAdminToken(folder, async (made) => {
      token = made;
    });
    const artifacts = openArtifacts(config);
    api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await api.request(path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    const text = await answer.text();
    return { status: answer.status, body: (text === '' ? null : JSON.parse(text)) as Record<string, unknown> };
  };
  const window = { since: new Date(noon - 3_600_000).toISOString(), until: new Date(noon + 3_600_000).toISOString() };
  const waitingFor = async (reviewer?: string) => {
    const { body } = await call('GET', `/api/review?agent=desk${reviewer ? `&reviewer=${reviewer}` : ''}`);
    return (body.conversations as { trajectory: string }[]).map(({ trajectory }) => trajectory).sort();
  };

  it('holds picked conversations until as many people as are asked for have labelled them', async () => {
    const vote = (id: string, value: number) =>
      entry.signal({ identity: id, target: { kind: 'trajectory', id }, kind: 'feedback', name: 'vote', value });
    await writeEntries(store, [
      entry.turn({ trajectory: a, startedAt: noon }),
      entry.turn({ trajectory: b, startedAt: noon + 1000 }),
      ...[vote(a, 1), vote(b, 0)],
    ]);
    const spec = agent!.reward;
    const of = { agent: 'desk', spec, since: new Date(window.since), until: new Date(window.until) };
    await scoreWindow(store, { ...of, now: new Date(noon + 3_600_000) });
    expect(await call('POST', '/api/review/pick', { agent: 'desk', ...window })).toMatchObject({
      body: { scored: 2, picked: 2, added: 2 },
    });
    expect(await call('POST', '/api/review/pick', { agent: 'desk', ...window })).toMatchObject({ body: { added: 0 } });
    expect(await waitingFor()).toEqual([a, b]);

    const said = { agent: 'desk', trajectory: a, reviewer: 'ann', score: 0.2, correction: 'It was sent on Monday.' };
    expect(await call('POST', '/api/review', said)).toMatchObject({ status: 204 });
    expect(await waitingFor('ann')).toEqual([b]);
    expect(await waitingFor('bob')).toEqual([a, b]);
    await call('POST', '/api/review', { agent: 'desk', trajectory: a, reviewer: 'bob', score: 0.1 });
    expect(await waitingFor()).toEqual([b]);
    expect((await call('GET', '/api/review')).body.agreement).toMatchObject({ both: 1 });
    expect(await call('POST', '/api/review', { ...said, trajectory: 'nowhere' })).toMatchObject({ status: 404 });
    expect(await call('POST', '/api/review', { ...said, score: 2 })).toMatchObject({ status: 400 });
  });

  it('makes a reviewer’s correction the installation’s own, to learn from, and writes down who said what', async () => {
    const corrections = await readCorrections(store, { agent: 'desk', turns: [], trajectories: [a] });
    expect(corrections).toMatchObject([{ text: 'It was sent on Monday.', by: 'given' }]);
    const rows = await readAudit(store, { agent: 'desk', oldestFirst: true });
    expect(rows.filter(({ event }) => event === 'conversation-reviewed').map(({ actor }) => actor)).toEqual([
      'ann',
      'bob',
    ]);
  });

  it('holds rollouts that wait, with the command that goes on', async () => {
    const made = { agent: 'desk', upstream: 'server', model: 'm' };
    await serveRelease(store, await createRelease(store, { ...made, name: 'v1' }, 'ann', noon), 'ann', noon);
    const candidate = await createRelease(store, { ...made, name: 'v2' }, 'ann', noon);
    const report = { id: 'report-1', verdict: 'inconclusive', baseline: 'v1', candidate: 'v2' } as const;
    await startRollout(
      store,
      { id: 'v2-out', agent: 'desk', candidate, report, origin: 'production', actor: 'ann' },
      noon,
    );
    expect((await call('GET', '/api/review')).body.waiting).toMatchObject([
      { kind: 'rollout', id: 'v2-out', command: 'pawl rollouts approve v2-out' },
    ]);
  });

  it('is worked through at a terminal: the next one is shown turn by turn, labelled, and gone', async () => {
    const file = join(folder, 'pawl.config.mjs');
    writeFileSync(file, "export default { agents: [{ name: 'desk', review: { share: 1, reviewers: 2 } }] };\n");
    const pawl = async (...args: string[]) => {
      const env = { ...process.env, DATABASE_URL: store.url, PAWL_HOME: folder };
      const all = ['bin/pawl.js', 'review', ...args, '--config', file];
      return (await promisify(execFile)(process.execPath, all, { env })).stdout;
    };
    expect(await pawl('pick', '--days', '90')).toMatch(
      /^\d+ of \d+ scored conversations of desk are picked, 0 of them now\.\n$/,
    );
    const next = await pawl('next', '--reviewer', 'cy');
    expect(next).toMatch(/^1 decision waits too: pawl review list --agent desk\n/);
    expect(next).toMatch(
      new RegExp(`Picked at random: reward .*\\n  pawl review label ${b} --agent desk --reviewer YOU`),
    );
    expect(await pawl('show', b)).toContain(b);
    await expect(pawl('label', b, '--reviewer', 'cy')).rejects.toThrow(
      'Say --score, a number from 0 to 1, or --approve',
    );
    expect(await pawl('label', b, '--reviewer', 'cy', '--approve')).toBe(`${b} is labelled 1.00 by cy.\n`);
    expect(await pawl('next', '--reviewer', 'cy')).toContain('No conversation of desk waits.');
    await pawl('label', b, '--reviewer', 'dee', '--score', '0.9', '--comment', 'Fine.', '--correction', 'It is here.');
    const list = await pawl('list');
    expect(list).toMatch(/^rollout v2-out waits for a person: .*\n {2}pawl rollouts approve v2-out\n/);
    // Of the two that two people labelled, one is bad for both and the other good for both.
    expect(list).toContain('Two people looked at 2: Cohen’s κ 1.00.');
    expect(JSON.parse(await pawl('list', '--json')).conversations).toEqual([]);
  });
});
