/** Releases and rollouts through /api, as a script would use it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyAdapter } from '../../test/tiny-adapter.ts';
import { openArtifacts } from '../artifacts/open.ts';
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
import { postgresRunStore } from '../store/runs.ts';
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
    agents: [
      {
        name: 'desk',
        // No gateway runs here to ask anything through; test/fit.test.ts has one.
        deploy: {
          ...{ steps: [0.5, 1], minTurns: 10, minUnits: 5, promotion: { rule: 'checks' }, shadow: { share: 0 } },
          compatibility: 'off',
        },
      },
      { name: 'shop' },
    ],
    upstreams: {
      vllm: { baseUrl: 'http://127.0.0.1:8000/v1' },
      lora: { baseUrl: 'http://127.0.0.1:1/v1', adapters: { kind: 'vllm' } },
    },
  };
  const config = parseConfig(settings, {}, folder);
  const artifacts = openArtifacts(config);
  api = createApi({ store, artifacts, config, secret: 's'.repeat(32), adminHash, recorder: () => ({}) as never });
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
    const kept = { checkpoint: expect.stringMatching(/^artifact:[0-9a-f]{64}$/) };
    expect(own.body).toMatchObject({ upstream: 'engine', model: 'v2', ...kept });
    const byReference = { name: 'v2', checkpoint: (own.body as { checkpoint: string }).checkpoint };
    expect((await call('POST', '/api/releases', byReference)).body).toMatchObject({ ...kept, name: 'v2' });
    const lost = `artifact:${'0'.repeat(64)}`;
    expect(await call('POST', '/api/releases', { name: 'v3', checkpoint: lost })).toMatchObject(
      refused(409, new RegExp(`Release v3 cannot be made: There is no ${lost}`)),
    );
    for (const [given, answer] of [
      [{ name: 'v3' }, refused(409, /^Say what answers: a checkpoint \(--checkpoint\)/)],
      [{ name: 'v3', upstream: 'gpu', model: 'm' }, refused(404, /no upstream gpu in the settings; there is vllm/)],
      [{ name: 'v3', upstream: 'engine', model: 'm' }, refused(409, /--checkpoint instead/)],
      [{ name: 'v3', checkpoint, model: 'm' }, refused(409, /leave --upstream, --model and --adapter away/)],
      [{ name: 'v3', upstream: 'vllm', adapter: folder }, refused(409, /Upstream vllm is not one that Pawl may tell/)],
      [{ name: 'v3', upstream: 'lora', adapter: folder }, refused(409, /is no adapter in PEFT’s format/)],
      [{ name: 'v3', upstream: 'lora', adapter: folder, model: 'm' }, refused(409, /leave --model away/)],
      [{ name: 'v3', adapter: folder }, refused(409, /^Say what answers/)],
      [{ name: 'v3', upstream: 'lora', adapter: 'v3' }, refused(400, /adapter: the reference of an artifact/)],
      [{ name: 'v3', checkpoint: folder }, refused(409, /Release v3 cannot be made: .*config\.json/)],
      [{ name: 'v3', checkpoint: 'tiny' }, refused(400, /checkpoint: the reference of an artifact, or a whole path/)],
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

  it('registers an adapter for a server to load, and says whether that has it', async () => {
    const adapter = await writeTinyAdapter(join(folder, 'adapter'));
    const { status, body } = await call('POST', '/api/releases', {
      ...{ name: 'a1', agent: 'shop', upstream: 'lora', adapter },
    });
    expect(status).toBe(201);
    const made = shape.releaseShape.parse(body);
    expect(made.model).toBe(`a1-${made.checkpoint!.slice('artifact:'.length, 'artifact:'.length + 12)}`);
    const again = await call('POST', '/api/releases', {
      ...{ name: 'a1', agent: 'shop', upstream: 'lora', adapter: made.checkpoint },
    });
    expect(again.body).toMatchObject({ id: made.id });
    const shown = shape.oneReleaseShape.parse((await call('GET', '/api/releases/a1?agent=shop')).body);
    expect(shown.adapter).toMatchObject({ state: 'unknown', sentence: expect.stringMatching(/cannot be reached/) });
    expect((await call('GET', '/api/releases/v1')).body).toMatchObject({ adapter: null });
  });

  it('takes the adapter of a run that has finished, and no other', async () => {
    const adapter = await writeTinyAdapter(join(folder, 'trained'), { value: 0.75 });
    const runs = postgresRunStore(store);
    const run = { agent: 'shop', recipe: 'sft', settings: {}, base: checkpoint, folder, seed: 1, steps: 1, step: 0 };
    const none = {
      reason: null,
      budget: {},
      spent: { seconds: 0, tokens: 0, money: 0 },
      request: null,
      owner: null,
      internal: false,
    };
    await runs.create({ ...run, ...none, id: 'run-1', status: 'running', heartbeatAt: 1, createdAt: 1 });
    const at = { run: 'run-1', step: 1, kind: 'step', stage: 0, state: null, validation: null } as const;
    await runs.saveCheckpoint({ ...at, folder: adapter });
    const asked = { name: 'a2', agent: 'shop', upstream: 'lora', run: 'run-1' };
    expect(await call('POST', '/api/releases', asked)).toMatchObject(
      refused(409, /only a finished run has an adapter/),
    );
    await runs.setStatus('run-1', 'finished', null, 2);
    expect(await call('POST', '/api/releases', asked)).toMatchObject({
      status: 201,
      body: { run: 'run-1', model: expect.stringMatching(/^a2-[0-9a-f]{12}$/) },
    });
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
    expect(one.decision.checks.map(({ name }) => name)).toEqual(['ratio', 'errors', 'latency', 'outcome', 'feedback']);
    expect(Object.keys(one.measurements)).toEqual(['ratio', 'errors', 'latency', 'outcome', 'slice', 'feedback']);
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

it('lets nothing in that nobody could ask, and says so', async () => {
  const make = (name: string) =>
    call('POST', '/api/releases', { name, agent: 'shop', ...atUpstream, sampling: { seed: name.length } });
  await make('first');
  await make('another');
  expect(await call('POST', '/api/releases/first/serve', { agent: 'shop' })).toMatchObject({ status: 200 });
  const unasked = refused(
    409,
    /^Whether release another fits its server could not be asked: .*no gateway\. `unfit` lets it/,
  );
  for (const [path, given] of [
    ['/api/releases/another/serve', {}],
    ['/api/releases/another/pin', { user: 'ann' }],
    ['/api/rollouts', { candidate: 'another', forced: 'A dare.' }],
  ] as const)
    expect(await call('POST', path, { agent: 'shop', ...given })).toMatchObject(unasked);
  const all = { agent: 'shop', unfit: 'The gateway is being moved.', by: 'ann' };
  expect(await call('POST', '/api/releases/another/serve', all)).toMatchObject({ status: 200 });
  const [row] = await readAudit(store, { event: 'compatibility-overridden' });
  expect(row).toMatchObject({ agent: 'shop', actor: 'ann', details: expect.stringContaining('is being moved') });
});
