/** Training through POST /api/runs: a real server that trains a small model on a dataset, is killed in the middle, and goes on. */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashedId } from '../src/collect/person.ts';
import { writeCheckpoint } from '../src/engine/checkpoint.ts';
import { parseSpec } from '../src/engine/model-spec.ts';
import { newModel } from '../src/engine/new-model.ts';
import { converse } from '../src/score/fixtures.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import { openStore } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { installationSecret } from '../src/store/secret.ts';
import { type MlflowStandIn, startMlflow } from '../src/train/fixtures/mlflow.ts';
import { isThorough, type PawlProcess, startPawl, until } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-runs-route-'));
const home = join(folder, '.pawl');
let pawl: PawlProcess;
let token = '';
let mlflow: MlflowStandIn;

// biome-ignore lint/suspicious/noExplicitAny: the bodies of every route
type Answer = { status: number; body: any };

async function call(method: string, path: string, body?: object): Promise<Answer> {
  const answer = await fetch(`${pawl.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${pawl.adminToken}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: answer.status, body: await answer.json() };
}
const ask = () =>
  fetch(`${pawl.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'desk', max_tokens: 4, messages: [{ role: 'user', content: 'Hi' }] }),
  });
const refused = (status: number, message: RegExp) => ({
  status,
  body: { error: { message: expect.stringMatching(message) } },
});
const readRun = async (id: string) => (await call('GET', `/api/runs/${id}?last=200`)).body;
const stepped = (id: string, step: number) =>
  until(
    () => readRun(id),
    ({ run }) => run.step >= step,
  );
const ended = (id: string) =>
  until(
    () => readRun(id),
    ({ run, model }) => run.status !== 'running' && (run.status !== 'finished' || model !== null),
  );
const weights = (model: string) =>
  createHash('sha256')
    .update(readFileSync(join(model, 'model.safetensors')))
    .digest('hex');

/** Each step once, in one run of MLflow, however often the run was interrupted. */
async function isLoggedWhole(id: string): Promise<void> {
  const found = mlflow.runs.filter(({ name }) => name === id);
  expect(found).toMatchObject([{ status: 'FINISHED' }]);
  expect(found[0]!.tags.get('pawl.dataset')).toBe('desk-v1');
  const losses = found[0]!.metrics.filter(({ key }) => key === 'sft/loss').map(({ step }) => step);
  const { run } = await readRun(id);
  expect(losses).toEqual(Array.from({ length: run.steps }, (_, step) => step));
}

/** Conversations with votes of people who agreed, and the dataset that is made of them. */
beforeAll(async () => {
  mlflow = await startMlflow('Bearer mlflow-token');
  writeFileSync(
    join(folder, 'pawl.config.ts'),
    `import { defineAgent, defineConfig, feedback, weighted } from 'pawl';
export default defineConfig({
  agents: [
    defineAgent({ name: 'shop' }),
    defineAgent({
      name: 'desk',
      reward: weighted({ votes: [1, feedback()] }),
      curate: { maxUserShare: 1, kAnonymity: 1 },
      train: { base: 'model', without: ['points', 'private', 'types', 'balance'] },
      loop: { every: null, after: null },
    }),
  ],
  engine: { threads: 1 },
  mlflow: { url: '${mlflow.url}', experiment: 'shops' },
});
`,
  );
  await writeCheckpoint(join(folder, 'model'), newModel(parseSpec('d32-l2-h2-kv1-v300'), { seed: 1, texts: [] }));
  const store = await openStore({ home });
  const user = hashedId('ann', await installationSecret(store, home));
  const at = Date.now() - 600_000;
  await giveConsent(store, 'desk', user, new Date(at - 1000));
  for (let i = 0; i < 48; i++) {
    const id = `talk-${i}`;
    const turns = converse(`Where is order ${i}?`, [{ say: `Order ${i} was sent.` }], {
      trajectory: id,
      user,
      startedAt: at + i,
    });
    await writeEntries(store, [
      ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
      entry.signal({
        identity: `vote ${id}`,
        user,
        value: 1,
        target: { kind: 'trajectory', id },
        at: at + 60_000,
        receivedAt: at + 60_000,
      }),
    ]);
  }
  await store.close();
  pawl = await startPawl({ MLFLOW_TRACKING_TOKEN: 'mlflow-token' }, home, undefined, [
    '--config',
    join(folder, 'pawl.config.ts'),
  ]);
  token = (await call('POST', '/api/keys', { agent: 'desk', name: 'test' })).body.token;
  await until(ask, ({ status }) => status === 200);
  expect((await call('POST', '/api/score/runs', { agent: 'desk' })).status).toBe(200);
  expect((await call('POST', '/api/datasets', { agent: 'desk' })).body).toMatchObject({ id: 'desk-v1' });
});
afterAll(async () => {
  await pawl?.kill();
  await mlflow.close();
  rmSync(folder, { recursive: true, force: true });
});

test('what cannot be trained is refused, with the reason', async () => {
  const dataset = 'desk-v1';
  for (const [given, answer] of [
    [{}, refused(400, /dataset/)],
    [{ dataset: 'desk-v9' }, refused(404, /There is no dataset desk-v9/)],
    [{ dataset, agent: 'nobody' }, refused(404, /no agent nobody in the settings; there is shop, desk/)],
    [{ dataset, agent: 'shop' }, refused(400, /desk-v1 is of agent desk, and this run would be of shop/)],
    [{ dataset, recipe: 'dpo' }, refused(400, /None of the 0 pairs/)],
    [{ dataset, recipe: 'grpo' }, refused(400, /dataset is for the recipes sft, dpo/)],
    [{ dataset, recipe: 'sft', kl: 0.1 }, refused(400, /kl is for the recipes grpo/)],
    [{ dataset, budget: { money: 3 } }, refused(400, /needs a price/)],
    [{ dataset, base: 'model' }, refused(400, /a whole path/)],
    [{ dataset, base: join(folder, 'nowhere') }, refused(400, /nowhere/)],
    [{ dataset, environment: 'code.ts' }, refused(400, /environment/)],
    [{ dataset, id: 'not a name' }, refused(400, /cannot name this run/)],
  ] as const)
    expect({ given, ...(await call('POST', '/api/runs', given)) }).toMatchObject({ given, ...answer });
  expect((await call('GET', '/api/runs')).body).toEqual({ runs: [] });
  expect(await call('POST', '/api/runs/none/resume')).toMatchObject(refused(404, /no run none/));
});

test('a run trains in the server, one at a time, is paused, goes on and leaves a model', async () => {
  const begun = await call('POST', '/api/runs', { dataset: 'desk-v1', recipe: 'sft', id: 'whole' });
  expect(begun).toMatchObject({
    status: 202,
    body: { run: { id: 'whole', agent: 'desk', base: expect.stringMatching(/^artifact:[0-9a-f]{64}$/) }, tooLong: 0 },
  });
  const second = { dataset: 'desk-v1', recipe: 'sft', id: 'second' };
  expect(await call('POST', '/api/runs', second)).toMatchObject(refused(409, /Run whole is under way/));
  // The engine that trains goes on answering.
  expect(await ask()).toMatchObject({ status: 200 });
  await stepped('whole', 1);
  expect((await call('POST', '/api/runs/whole/pause')).body.kind).toBe('asked');
  const paused = await ended('whole');
  expect(paused).toMatchObject({ run: { status: 'paused', reason: 'Paused on request.' }, model: null });
  expect(paused.run.step).toBeLessThan(paused.run.steps);
  expect(
    await until(
      () => call('POST', '/api/runs/whole/resume'),
      ({ status }) => status !== 409,
    ),
  ).toMatchObject({ status: 202 });
  const whole = await ended('whole');
  expect(whole).toMatchObject({ run: { status: 'finished', reason: null }, model: join(home, 'models', 'whole') });
  await isLoggedWhole('whole');
  // The run has ended a moment before the server's one place to train is free again.
  expect(
    await until(
      () => call('POST', '/api/runs/whole/resume'),
      ({ body }) => !/under way/.test(body.error?.message ?? ''),
    ),
  ).toMatchObject(refused(409, /finished/));
});

test.each(isThorough ? (['SIGKILL', 'SIGTERM'] as const) : (['SIGKILL'] as const))(
  'a server ended by %s in the middle has no result, and the next one comes to the same weights',
  async (signal) => {
    const id = `cut-${signal.toLowerCase()}`;
    expect((await call('POST', '/api/runs', { dataset: 'desk-v1', recipe: 'sft', id })).status).toBe(202);
    await stepped(id, 2);
    await pawl.kill(signal);
    expect(existsSync(join(home, 'models', id))).toBe(false);
    pawl = await pawl.restart();
    const { run, model, metrics } = await until(
      () => readRun(id),
      ({ model: written }) => written !== null,
    );
    expect(run.status).toBe('finished');
    expect(metrics.map(({ step }: { step: number }) => step)).toEqual(Array.from({ length: run.steps }, (_, i) => i));
    expect(weights(model)).toBe(weights(join(home, 'models', 'whole')));
    await isLoggedWhole(id);
    await until(
      () => existsSync(join(home, 'training.json')),
      (isLeft) => !isLeft,
    );
  },
);
