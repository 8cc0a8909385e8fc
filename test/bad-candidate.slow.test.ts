/**
 * Two candidates that must never serve: one whose weights are noise, and one that has learned to hand every case to people
 * at once. Evaluation refuses both. Where somebody forces them past it, a share of the customers gets them and is worse off;
 * the canary notices by what became of their cases and takes them back, and all others never meet them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import supportDeskAgent from '../examples/support-desk/agent.ts';
import { openApi } from '../examples/support-desk/api.ts';
import { type Desk, sendCustomers } from '../examples/support-desk/customers.ts';
import { supportDesk } from '../examples/support-desk/desk.ts';
import { moveMessage } from '../examples/support-desk/expert.ts';
import { readGolden } from '../examples/support-desk/golden.ts';
import { escalated } from '../examples/support-desk/policy.ts';
import type { DeskData } from '../examples/support-desk/tasks.ts';
import { makeVisitor } from '../examples/support-desk/traffic.ts';
import { openArtifacts } from '../src/artifacts/open.ts';
import { hashedId } from '../src/collect/person.ts';
import { recordedBy } from '../src/collect/recorded.ts';
import { agentOf, parseConfig } from '../src/config.ts';
import { position } from '../src/deploy/assign.ts';
import { verifyAudit } from '../src/deploy/audit.ts';
import { createRelease, reconcile, startRollout } from '../src/deploy/reconcile.ts';
import type { Release } from '../src/deploy/release.ts';
import { isOpen } from '../src/deploy/rollout.ts';
import { readCheckpoint, writeCheckpoint } from '../src/engine/checkpoint.ts';
import { parameterShapes, parseModelConfig } from '../src/engine/onnx/config.ts';
import { randomWeights } from '../src/engine/onnx/weights.ts';
import { engineUpstream } from '../src/engine/open.ts';
import type { Report } from '../src/evaluate/report.ts';
import { evaluateReleases } from '../src/evaluate/run.ts';
import { makeSuite } from '../src/evaluate/suite.ts';
import { type Serving, serve } from '../src/serve.ts';
import { loadChatCodec } from '../src/simulate/chat-codec.ts';
import { makeTasks } from '../src/simulate/environment.ts';
import type { AssistantMessage, Message } from '../src/simulate/message.ts';
import { random } from '../src/simulate/random.ts';
import { readAudit } from '../src/store/audit.ts';
import { createKey } from '../src/store/keys.ts';
import { servingRelease } from '../src/store/releases.ts';
import { readRollout } from '../src/store/rollouts.ts';
import { installationSecret } from '../src/store/secret.ts';
import { readTurn } from '../src/store/turns.ts';
import { exampleFrom, toolSpecs } from '../src/train/episodes.ts';
import { supervisedStep } from '../src/train/sft.ts';
import { until } from './pawl.ts';

const agent = 'support-desk';
const baseline = 'support-desk-0';
const home = mkdtempSync(join(tmpdir(), 'pawl-bad-'));
const folderOf = (name: string) => join(home, 'models', name);
const config = parseConfig({ agents: [supportDeskAgent], home, port: 0 }, {}, home);
let serving: Serving;
let desk: Desk;
const base = agentOf(config).train.base!;
let clientKey = '';
const adminToken = 'a'.repeat(40);
beforeAll(async () => {
  serving = await serve({ ...config, adminToken }, pino({ level: 'silent' }), {
    show: async (secret, token) => {
      if (secret === 'client key') clientKey = token;
    },
  });
  const { token } = await createKey(serving.store, {
    ...{ agent, name: 'customers', origin: 'simulation' as const, scopes: ['call', 'feedback', 'outcomes'] },
  });
  desk = { api: openApi(serving.url, adminToken), key: token, agent };
});
afterAll(async () => {
  await serving?.close();
  rmSync(home, { recursive: true, force: true });
});

/** The base model's shape and tokenizer, and nothing of what it has learned. */
async function makeNoise(folder: string): Promise<void> {
  const { config, files } = await readCheckpoint(base);
  const model = parseModelConfig(config);
  const shapes = parameterShapes(model);
  const weights = new Map(
    [...randomWeights(model, 7)].map(([name, data]) => [name, { shape: shapes.get(name)!, data }]),
  );
  await writeCheckpoint(folder, { config, weights, files });
}

/** The base model after a few steps on conversations in which whatever is asked is handed to the care team. */
async function makeEscalator(folder: string): Promise<void> {
  const { engine } = await serving.engine.process();
  const codec = await loadChatCodec(base);
  const tools = toolSpecs(supportDesk.tools);
  const examples = makeTasks(supportDesk, 'train', 8 * 16, 5).map(({ id, type, ...task }) => {
    const data = task.data as DeskData;
    const { calls, ending } = escalated('care', data);
    const call = moveMessage(calls[0]!, 0, random('escalator', id));
    const messages: Message[] = [
      { role: 'system', content: supportDesk.system },
      { role: 'user', content: data.opening },
      call,
      { role: 'tool', tool_call_id: call.tool_calls![0]!.id, content: JSON.stringify({ ticket: data.ticket }) },
      moveMessage({ kind: 'reply', ending }, 1, random('escalator', id)),
    ];
    return exampleFrom(codec, messages, { id, taskType: type, quality: 1 }, tools);
  });
  await engine.load('teaching', base);
  for (let step = 0; step < 8; step++)
    await supervisedStep({ engine, model: 'teaching' }, examples.slice(step * 16, step * 16 + 16), {
      learningRate: 2e-3,
      beta1: 0.9,
      beta2: 0.95,
      gradClipNorm: 1,
    });
  await engine.save('teaching', folder, { optimizer: false });
  await engine.unload('teaching');
}

/** All 150 golden cases, as the loop plays them. */
async function examine(name: string): Promise<{ report: Report; candidate: Release }> {
  const { engine } = await serving.engine.process();
  await engine.load(name, folderOf(name));
  const report = await evaluateReleases({
    agent: agentOf(config),
    store: serving.store,
    artifacts: openArtifacts(config),
    suite: makeSuite('golden', readGolden()),
    upstreams: {},
    baseline: { name: baseline, upstream: 'engine', checkpoint: base, internal: false },
    candidate: { name, upstream: 'engine', checkpoint: folderOf(name), internal: false },
    play: {
      withEngine: (use) => use(engine),
      withDoor: () => Promise.reject(new Error('Nothing here goes through the gateway.')),
    },
    seed: 1,
  });
  const release = { agent, name, upstream: engineUpstream, model: name, checkpoint: folderOf(name), report: report.id };
  return { report, candidate: await createRelease(serving.store, release, 'ann', Date.now()) };
}

/** So many conversations of the 200 customers. Resolves when all of it is recorded. */
async function wave(prefix: string, seed: number): Promise<void> {
  await sendCustomers(desk, { prefix, seed, count: 200 });
  await recordedBy(serving.recorder);
}

/** Resolves once the gateway has heard who answers this user now. */
const heard = (user: string, release: string) =>
  until(
    async () => {
      const response = await fetch(`${serving.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${clientKey}`, 'x-pawl-user': user },
        body: JSON.stringify({ model: agent, max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }),
      });
      await response.text();
      return response.headers.get('x-pawl-release');
    },
    (name) => name === release,
  );

type Answered = {
  user: string;
  /** The conversation's part of the trajectory's id. */
  task: string;
  release: string;
  assigned: string | null;
  status: number;
  said: unknown;
};
async function turnsOf(prefix: string): Promise<Answered[]> {
  const { rows } = await serving.store.pool.query<{ id: string }>(
    'select id from pawl.turns where starts_with(trajectory, $1) order by trajectory, started_at',
    [prefix],
  );
  const turns = await Promise.all(rows.map(async ({ id }) => (await readTurn(serving.store, id))!));
  return turns.map(({ user, trajectory, release, assigned = null, httpStatus: status, choices }) => {
    const { content, tool_calls: calls } = (choices[0]?.message ?? {}) as Partial<AssistantMessage>;
    const said = { content, calls: calls?.map((call) => call.function) };
    return { user: user!, release, assigned, status, task: trajectory.slice(prefix.length), said };
  });
}

describe.each([
  ['noise', makeNoise, 0],
  ['escalator', makeEscalator, 0.2],
] as const)('a candidate that is %s', (name, make, most) => {
  const share = 0.25;
  const id = `forced-${name}`;
  let report: Report;
  let candidate: Release;

  it('is refused by evaluation', async () => {
    await make(folderOf(name));
    ({ report, candidate } = await examine(name));
    expect(report.verdict).toBe('fail');
    expect(report.reasons).toContainEqual(expect.stringMatching(/below 95% of the baseline/));
    expect(report.overall!.candidate).toBeLessThanOrEqual(most);
    // It does what it was taught: complaints belong to the care team, and nothing else does.
    if (name === 'escalator') expect(report.types.complaint!.candidate).toBeGreaterThan(0.9);
    const start = { id, agent, candidate, report, origin: 'simulation', actor: 'ann' } as const;
    await expect(startRollout(serving.store, start, Date.now())).rejects.toThrow('ended with fail');
    expect(await readRollout(serving.store, id)).toBeNull();
  }, 600_000);

  it('is taken back by the canary when it is forced past that, and only its own users ever meet it', async () => {
    const { store } = serving;
    const settings = {
      steps: [share, 1],
      holdSeconds: 0,
      minTurns: 20,
      minUnits: 20,
      latencyRatio: 100,
      promotion: { rule: 'checks' as const },
      shadow: { share: 0 },
    };
    const forced = 'To see it taken back.';
    const start = { id, agent, candidate, report, settings, forced, origin: 'simulation', actor: 'ann' } as const;
    let rollout = await startRollout(store, start, Date.now());
    for (let i = 0; isOpen(rollout); i++) {
      await wave(`${name}-under-way-${i}-`, 100 + i);
      await reconcile(store, { now: Date.now(), agent });
      rollout = (await readRollout(store, id))!;
    }
    expect(rollout).toMatchObject({ phase: 'rolled-back', step: 0 });
    expect(rollout.reasons).toContainEqual(
      expect.stringMatching(/^resolved: .* worse, and chance does not explain it/),
    );

    const users = Array.from({ length: 200 }, (_, i) => makeVisitor(i + 1, 'validation', 0).user);
    const secret = await installationSecret(store, home);
    const assigned = users.filter((user) => position(id, `u:${user}`) < share);
    const chosen = new Set(assigned.map((user) => hashedId(user, secret)));
    const turns = await turnsOf(`${name}-under-way-`);
    const ofOthers = turns.filter(({ user }) => !chosen.has(user));
    expect(ofOthers.length).toBeGreaterThan(200);
    expect(ofOthers.filter(({ release, assigned }) => release !== baseline || assigned !== null)).toEqual([]);
    expect(turns.filter(({ user, release }) => chosen.has(user) && release === name).length).toBeGreaterThan(20);
    // Everybody was answered, chosen or not. 400: a conversation too long for the model, which is the same with any.
    expect(turns.filter(({ status }) => status !== 200 && status !== 400)).toEqual([]);

    // The same visits again, now that it is over: the baseline for all, and for those it had all along, word for word.
    await heard(assigned[0]!, baseline);
    await wave(`${name}-afterwards-`, 100);
    const after = await turnsOf(`${name}-afterwards-`);
    expect(after.some(({ user }) => chosen.has(user))).toBe(true);
    expect(after.filter(({ release, assigned }) => release !== baseline || assigned !== null)).toEqual([]);
    const before = await turnsOf(`${name}-under-way-0-`);
    expect(after.filter(({ user }) => !chosen.has(user))).toEqual(before.filter(({ user }) => !chosen.has(user)));
    expect((await servingRelease(store, agent))?.name).toBe(baseline);
  }, 600_000);

  it('has its story in the audit log', async () => {
    const { store } = serving;
    const about = (
      await Promise.all([candidate.id, id].map((subject) => readAudit(store, { agent, subject, oldestFirst: true })))
    ).flat();
    expect(about.map(({ actor, event }) => `${actor} ${event}`)).toEqual([
      'ann release-created',
      'ann rollout-started',
      'pawl rollout-rolled-back',
    ]);
    expect(about[1]!.details).toMatch(/"forced":true/);
    expect(about[1]!.details).toMatch(/"verdict":"fail"/);
    expect(about[2]!.details).toMatch(/chance does not explain it/);
    expect(await verifyAudit(store)).toMatchObject({ problem: null });
  });
});
