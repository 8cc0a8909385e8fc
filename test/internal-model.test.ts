/** What is confidential stays inside: from the dataset's mark to the run, the weights, the release, its card, and what is refused. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureAdminToken } from '../src/api/admin.ts';
import { type Api, createApi } from '../src/api/api.ts';
import type { Artifacts } from '../src/artifacts/artifacts.ts';
import { openArtifacts } from '../src/artifacts/open.ts';
import type { JournalEntry } from '../src/collect/signal.ts';
import { type Config, parseConfig } from '../src/config.ts';
import { keepAdapters } from '../src/deploy/keep-adapters.ts';
import { writeCheckpoint } from '../src/engine/checkpoint.ts';
import type { Engine } from '../src/engine/engine.ts';
import { parseSpec } from '../src/engine/model-spec.ts';
import { newModel } from '../src/engine/new-model.ts';
import { createOnnxEngine } from '../src/engine/onnx/engine.ts';
import { feedback } from '../src/score/feedback.ts';
import { converse } from '../src/score/fixtures.ts';
import { judge } from '../src/score/judge.ts';
import { weighted } from '../src/score/weighted.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { withStore } from '../src/store/test-store.ts';
import { createTrainings, type Trainings } from '../src/train/trainings.ts';
import { startJudge } from './judge-server.ts';
import { until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-internal-model-'));
const home = join(folder, '.pawl');
let store: Store;
let artifacts: Artifacts;
let config: Config;
let engine: Engine;
let trainings: Trainings;
let api: Api;
let token = '';

beforeAll(async () => {
  store = await withStore();
  await writeCheckpoint(join(folder, 'model'), newModel(parseSpec('d16-l1-h2-kv1-v300'), { seed: 1, texts: [] }));
  const server = { baseUrl: 'http://127.0.0.1:1/v1', adapters: { kind: 'vllm' } };
  const settings = {
    home,
    agents: [
      {
        name: 'desk',
        reward: weighted({ votes: [1, feedback()] }),
        curate: { maxUserShare: 1, kAnonymity: 1, confidential: { phrases: ['Project Heron'], keep: 'inside' } },
        train: { base: join(folder, 'model'), without: ['points', 'private', 'types', 'balance'], lora: { rank: 2 } },
      },
    ],
    upstreams: { hosted: server, own: { ...server, inside: true } },
  };
  config = parseConfig(settings, {}, folder);
  artifacts = openArtifacts(config);
  engine = createOnnxEngine({ threads: 1 });
  const log = { info: () => {}, warn: () => {} };
  trainings = createTrainings({ store, artifacts, config, engine: async () => engine, log: log as never });
  const adminHash = await ensureAdminToken(home, async (made) => {
    token = made;
  });
  api = createApi({
    ...{ store, artifacts, config, adminHash, trainings },
    ...{ secret: 's'.repeat(32), recorder: () => ({}) as never },
  });
  const at = Date.now() - 600_000;
  await giveConsent(store, 'desk', 'ann', new Date(at - 1000));
  const talks = Array.from({ length: 4 }, (_, i): JournalEntry[] => {
    const target = { kind: 'trajectory', id: `talk-${i}` } as const;
    const said = converse(`Who works on Project Heron, ${i}?`, [{ say: `Team ${i}.` }], {
      ...{ trajectory: target.id, user: 'ann', startedAt: at + i },
    });
    const vote = { identity: `vote ${i}`, user: 'ann', value: 1, target, at: at + 1000, receivedAt: at + 1000 };
    return [...said.map((turn): JournalEntry => ({ kind: 'turn', turn })), entry.signal(vote)];
  });
  await writeEntries(store, talks.flat());
});
afterAll(async () => {
  await trainings?.close();
  await engine?.close();
  rmSync(folder, { recursive: true, force: true });
});

// biome-ignore lint/suspicious/noExplicitAny: the bodies of every route
type Answer = { status: number; body: any };
const call = async (method: string, path: string, given?: unknown): Promise<Answer> => {
  const headers = { authorization: `Bearer ${token}`, ...(given ? { 'content-type': 'application/json' } : {}) };
  const answer = await api.request(path, { method, headers, ...(given ? { body: JSON.stringify(given) } : {}) });
  return { status: answer.status, body: await answer.json() };
};
const refused = (status: number, message: RegExp) => ({
  status,
  body: { error: { message: expect.stringMatching(message) } },
});
const train = async (id: string, more: object = {}) => {
  const answer = await call('POST', '/api/runs', { dataset: 'desk-v1', recipe: 'sft', id, ...more });
  if (answer.status !== 202) return answer;
  return until(
    () => call('GET', `/api/runs/${id}`),
    ({ body }) => body.run.status !== 'running' && body.model !== null,
  );
};

it('is marked from the dataset to the model card, and refused by every door that leads out', async () => {
  expect((await call('POST', '/api/score/runs', { agent: 'desk' })).status).toBe(200);
  expect((await call('POST', '/api/datasets', { agent: 'desk' })).body).toMatchObject({
    id: 'desk-v1',
    internal: true,
  });

  const model = join(home, 'models', 'first');
  expect((await train('first')).body).toMatchObject({ run: { status: 'finished', internal: true }, model });
  expect(JSON.parse(readFileSync(join(model, 'internal.json'), 'utf8'))).toMatchObject({
    ...{ internal: true, agent: 'desk', run: 'first', dataset: 'desk-v1' },
  });

  // Outside: as an adapter that a server is told to load, and as one that it is said to have.
  for (const given of [{ run: 'first' }, { run: 'first', model: 'heron' }, { dataset: 'desk-v1', model: 'heron' }])
    expect(await call('POST', '/api/releases', { name: 'out', upstream: 'hosted', ...given })).toMatchObject(
      refused(409, /its model is internal.*upstream hosted is not known as part of your deployment.*inside: true/),
    );
  // Inside: a server that the settings call their own, and Pawl's engine. A folder says so itself, whoever copied it.
  expect(await call('POST', '/api/releases', { name: 'in', upstream: 'own', run: 'first' })).toMatchObject({
    ...{ status: 201, body: { internal: true } },
  });
  const adapter = (await call('GET', '/api/releases/in')).body.release.checkpoint;
  expect(await call('POST', '/api/releases', { name: 'out', upstream: 'hosted', adapter })).toMatchObject(
    refused(409, /internal/),
  );
  cpSync(model, join(folder, 'copied'), { recursive: true });
  expect(await call('POST', '/api/releases', { name: 'copied', checkpoint: join(folder, 'copied') })).toMatchObject({
    status: 201,
    body: { internal: true, run: null, dataset: null },
  });
  const { body } = await call('GET', '/api/releases/copied');
  expect(body.card).toContain('**Internal**');
  expect(body.cardYaml).toMatch(/"internal": true/);
});

it('is inherited by what is trained from it, and goes to no engine elsewhere', async () => {
  const base = join(folder, 'copied');
  expect((await train('second', { base })).body.run).toMatchObject({ status: 'finished', internal: true });
  const elsewhere: Engine = { ...engine, traits: { ...engine.traits, isInside: false } };
  const log = { info: () => {}, warn: () => {} } as never;
  const remote = createTrainings({ store, artifacts, config, engine: async () => elsewhere, log });
  await expect(remote.begin('desk', { dataset: 'desk-v1', seed: 1, id: 'away' })).rejects.toThrow(
    /Dataset desk-v1 is internal.*a server elsewhere.*inside: true/,
  );
  await remote.close();
});

it('is not shown to a judge outside, and to one that is part of the deployment it is', async () => {
  const server = await startJudge();
  const reward = weighted({ judge: [1, judge()] });
  const scoredWith = async (inside: boolean) => {
    const upstreams = { box: { baseUrl: server.url, inside } };
    const agents = [{ name: 'desk', reward: inside ? { ...reward, version: 'again' } : reward }];
    const judging = parseConfig({ home, agents, upstreams, judge: { upstream: 'box', model: 'j' } }, {}, folder);
    const adminHash = await ensureAdminToken(home, async () => {});
    const door = createApi({
      ...{ store, artifacts, config: judging, adminHash, trainings },
      ...{ secret: 's'.repeat(32), recorder: () => ({}) as never },
    });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const ask = async (path: string, body?: object) => {
      const how = body && { method: 'POST', body: JSON.stringify(body) };
      // biome-ignore lint/suspicious/noExplicitAny: the bodies of every route
      return (await (await door.request(path, { ...how, headers })).json()) as any;
    };
    const window = { agent: 'desk', since: new Date(Date.now() - 60_000).toISOString() };
    const { calls } = await ask('/api/score/plans', window);
    const { judge: took } = await ask('/api/score/runs', window);
    const { scores } = await ask('/api/trajectories/by-heron/scores');
    return { planned: calls, calls: took.calls, withheld: took.withheld, part: scores[0].parts.judge };
  };
  try {
    const said = converse('Who works on it?', [{ say: 'Team 7.' }], { trajectory: 'by-heron', startedAt: Date.now() });
    const turns = said.map((turn): JournalEntry => ({ kind: 'turn', turn: { ...turn, release: 'in' } }));
    await writeEntries(store, turns);
    expect(await scoredWith(false)).toMatchObject({
      ...{ planned: 0, calls: 0, withheld: 1 },
      part: {
        value: null,
        reason: expect.stringMatching(/^the model of in is internal, .*upstream box.*inside: true/),
      },
    });
    expect(server.bodies).toEqual([]);
    expect(await scoredWith(true)).toMatchObject({ planned: 1, calls: 1, withheld: 0, part: { value: 0.8 } });
  } finally {
    await server.close();
  }
});

it('is not loaded at a server that was taken out of the deployment after it was registered', async () => {
  const release = (await call('GET', '/api/releases/in')).body.release;
  const asked: string[] = [];
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.setHeader('content-type', 'application/json').end('{"object":"list","data":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`;
  const upstreams = { own: { ...config.upstreams.own!, baseUrl, inside: false } };
  const kept = keepAdapters({ upstreams, home, folderOf: (one) => artifacts.folder(one), log: () => {} });
  try {
    await expect(kept.ready(release)).rejects.toThrow(/it is internal, and upstream own is not known/);
    expect(asked.filter((line) => line.startsWith('POST'))).toEqual([]);
    expect(existsSync(join(home, 'adapters', release.model))).toBe(false);
  } finally {
    await kept.close();
    server.close();
  }
});
