/** Releases and rollouts through /api, as a script would use it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../config.ts';
import { traffic } from '../deploy/fixtures.ts';
import { writeCheckpoint } from '../engine/checkpoint.ts';
import { parseSpec } from '../engine/model-spec.ts';
import { newModel } from '../engine/new-model.ts';
import type { Report } from '../evaluate/report.ts';
import { readAudit } from '../store/audit.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { saveReport } from '../store/reports.ts';
import { withStore } from '../store/test-store.ts';
import { ensureAdminToken } from './admin.ts';
import { type Api, createApi } from './api.ts';
import * as shape from './schema-deploy.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-api-deploy-'));
const checkpoint = join(folder, 'tiny');
let store: Store;
let api: Api;
let token = '';

beforeAll(async () => {
  store = await withStore();
  await writeCheckpoint(checkpoint, newModel(parseSpec('d16-l1-h2-kv1-v300'), { seed: 1, texts: [] }));
  const adminHash = await ensureAdminToken(folder, async (made) => {
    token = made;
  });
  const settings = {
    agents: [{ name: 'desk', deploy: { steps: [0.5, 1], minTurns: 10, minUnits: 5 } }, { name: 'shop' }],
    upstreams: { vllm: { baseUrl: 'http://127.0.0.1:8000/v1' } },
  };
  const config = parseConfig(settings, {}, folder);
  api = createApi({ store, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const call = async (method: string, path: string, given?: unknown) => {
  const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
  const answer = await api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
  return { status: answer.status, body: await answer.json() };
};
const refused = (status: number, message: RegExp) => ({
  status,
  body: { error: { message: expect.stringMatching(message) } },
});
const atUpstream = { upstream: 'vllm', model: 'Qwen/Qwen3-8B' };
const report = (id: string, verdict: Report['verdict'], baseline: string, candidate: string): Report => ({
  ...{ id, agent: 'desk', baseline, candidate, attempts: 1, temperature: 1, seed: 7, overall: null, types: {} },
  ...{ suite: { name: 'golden', hash: 'abc', tasks: 0 }, tasks: [], drift: null, verdict, reasons: [], seconds: 0 },
  createdAt: Date.now(),
});

describe('/api/releases', () => {
  it('registers what can answer, and refuses what cannot', async () => {
    const made = await call('POST', '/api/releases', { name: 'v1', ...atUpstream, by: 'ann' });
    expect(made.status).toBe(201);
    expect(shape.releaseShape.parse(made.body)).toMatchObject({ agent: 'desk', checkpoint: null, serving: false });
    const own = await call('POST', '/api/releases', { name: 'v2', checkpoint });
    expect(own.body).toMatchObject({ upstream: 'engine', model: 'v2', checkpoint });
    for (const [given, answer] of [
      [{ name: 'v3' }, refused(409, /^Say what answers: a checkpoint folder/)],
      [{ name: 'v3', upstream: 'gpu', model: 'm' }, refused(404, /no upstream gpu in the settings; there is vllm/)],
      [{ name: 'v3', upstream: 'engine', model: 'm' }, refused(409, /--checkpoint instead/)],
      [{ name: 'v3', checkpoint, model: 'm' }, refused(409, /leave --upstream and --model away/)],
      [{ name: 'v3', checkpoint: folder }, refused(409, /Release v3 cannot be made: .*config\.json/)],
      [{ name: 'v3', checkpoint: 'tiny' }, refused(400, /checkpoint: a whole path/)],
      [{ name: 'v3', ...atUpstream, run: 'r' }, refused(404, /Agent desk has no run r; `pawl runs list/)],
      [{ name: 'v3', ...atUpstream, report: 'r' }, refused(404, /no report r/)],
      [{ name: 'v3', ...atUpstream, dataset: 'd' }, refused(404, /no dataset d/)],
      [{ name: 'v3', ...atUpstream, agent: 'other' }, refused(404, /no agent other .*; there is desk, shop/)],
      [{ name: 'v1', upstream: 'vllm', model: 'other' }, refused(409, /has another release named v1/)],
      [
        { name: 'v2', agent: 'shop', checkpoint },
        refused(409, /Agent desk has a release named v2 on Pawl’s own engine/),
      ],
      [{ name: 'v 3', ...atUpstream, colour: 'red' }, refused(400, /name: letters.*colour/)],
    ] as const)
      expect(await call('POST', '/api/releases', given)).toMatchObject(answer);
  });

  it('lets one serve, says which does, and has its card', async () => {
    expect((await call('POST', '/api/releases/v1/serve', { by: 'ann', reason: 'The first.' })).body).toMatchObject({
      changed: true,
      release: { name: 'v1', serving: true },
    });
    expect((await call('POST', '/api/releases/v1/serve')).body).toMatchObject({ changed: false });
    const aliases = ['gpt-4o', 'gpt-4o'];
    expect((await call('POST', '/api/releases/v1/serve', { aliases })).body).toMatchObject({ changed: true });
    expect((await call('POST', '/api/releases/v1/serve', { aliases })).body).toMatchObject({ changed: false });
    expect((await call('POST', '/api/releases/v1/serve', { aliases: [''] })).status).toBe(400);
    expect(await call('POST', '/api/releases/v9/serve')).toMatchObject(refused(404, /Agent desk has no release v9/));
    const listed = shape.releasesShape.parse((await call('GET', '/api/releases?agent=desk')).body);
    expect(listed.releases.map(({ name, serving }) => [name, serving])).toEqual([
      ['v2', false],
      ['v1', true],
    ]);
    const one = shape.oneReleaseShape.parse((await call('GET', '/api/releases/v1')).body);
    expect(one.card).toMatch(/^# v1\n[\s\S]*release-served by ann/);
    const [names, first] = await readAudit(store, { event: 'release-served' });
    expect(JSON.parse(names!.details)).toEqual({ name: 'v1', before: 'v1', aliases: ['gpt-4o'] });
    expect(JSON.parse(first!.details)).toMatchObject({ before: null, reason: 'The first.' });
  });
});

describe('/api/rollouts', () => {
  it('begins by what the report says', async () => {
    const start = (given: object) => call('POST', '/api/rollouts', { candidate: 'v2', by: 'ann', ...given });
    expect(await start({})).toMatchObject(refused(409, /it has not been evaluated against v1, which serves/));
    expect(await start({ report: 'report-0' })).toMatchObject(refused(404, /no report report-0/));
    await saveReport(store, report('report-1', 'fail', 'v1', 'v2'));
    expect(await start({})).toMatchObject(refused(409, /its evaluation ended with fail/));
    await saveReport(store, report('report-2', 'inconclusive', 'v1', 'v2'));
    const { status, body } = await start({});
    expect(status).toBe(201);
    expect(shape.rolloutShape.parse(body)).toMatchObject({
      ...{ id: 'v2-r1', baseline: 'v1', candidate: 'v2', report: 'report-2', phase: 'waiting', share: 0 },
      steps: [0.5, 1],
    });
    expect(await start({ id: 'another' })).toMatchObject(refused(409, /has a rollout that has not ended/));
    expect(await call('POST', '/api/releases/v2/serve')).toMatchObject(refused(409, /pawl rollouts abort v2-r1/));
  });

  it('is moved by people, in the order that its states allow', async () => {
    const move = (name: string, given?: object) => call('POST', `/api/rollouts/v2-r1/${name}`, given);
    expect((await move('approve', { by: 'bob', reason: 'Worth a try.' })).body).toMatchObject({
      ...{ phase: 'canary', share: 0.5, reasons: ['Worth a try.'] },
    });
    expect(await move('approve')).toMatchObject(refused(409, /is canary at step 1 and cannot approve/));
    const now = Date.now();
    await writeEntries(store, [
      ...traffic({ release: 'v1', users: 10, resolved: 6, from: now }),
      ...traffic({ release: 'v2', users: 8, resolved: 8, from: now }),
    ]);
    const one = shape.oneRolloutShape.parse((await call('GET', '/api/rollouts/v2-r1')).body);
    expect(one.rollout.phase).toBe('canary');
    expect(one.decision.kind).toBe('hold');
    expect(one.decision.checks.map(({ name }) => name)).toEqual(['errors', 'latency', 'outcome', 'feedback']);
    expect(Object.keys(one.measurements)).toEqual(['errors', 'latency', 'outcome', 'slice', 'feedback']);
    expect((await move('hold')).body).toMatchObject({ phase: 'paused', share: 0.5, stepSince: null });
    expect(await move('promote')).toMatchObject(refused(400, /^reason: say why/));
    expect((await move('promote', { reason: 'Good enough.' })).body).toMatchObject({ phase: 'promoted', share: 1 });
    expect(await move('abort')).toMatchObject(refused(409, /has ended/));
    expect(await move('explode')).toMatchObject({ status: 400 });
    expect(await call('GET', '/api/rollouts/r9')).toMatchObject(refused(404, /There is no rollout r9/));
    const rows = await readAudit(store, { subject: 'v2-r1', oldestFirst: true });
    expect(rows.map(({ actor, event }) => `${actor} ${event}`)).toEqual([
      'ann rollout-started',
      'bob rollout-approved',
      'admin rollout-held',
      'admin rollout-promoted',
    ]);
  });

  it('goes back by letting the old release serve', async () => {
    expect((await call('POST', '/api/releases/v1/serve', { reason: 'Back.' })).body).toMatchObject({ changed: true });
    const { rollouts } = shape.rolloutsShape.parse((await call('GET', '/api/rollouts')).body);
    expect(rollouts).toMatchObject([{ id: 'v2-r1', phase: 'promoted' }]);
    const again = await call('POST', '/api/rollouts', { candidate: 'v2', forced: 'To see.' });
    expect(again.body).toMatchObject({
      id: 'v2-r2',
      phase: 'canary',
      reasons: [expect.stringMatching(/^Forced: To see/)],
    });
  });

  it('is for the admin alone', async () => {
    for (const path of ['/api/releases', '/api/rollouts', '/api/rollouts/v2-r1'])
      expect((await api.request(path)).status).toBe(401);
  });
});
