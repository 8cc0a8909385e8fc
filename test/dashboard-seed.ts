/**
 * A database as an installation has it after some weeks: conversations with tool calls, reasoning, masks and errors, votes,
 * outcomes and labels, scores, a dataset, runs, reports, releases, a rollout under way, turns of the loop, something to review.
 * Everything is written by the store's own functions and follows from its numbers; nothing is random.
 */

import { openArtifacts } from '../src/artifacts/open.ts';
import { settledPii } from '../src/collect/redact/settings.ts';
import type { JournalEntry } from '../src/collect/signal.ts';
import type { Config } from '../src/config.ts';
import { agentOf } from '../src/config.ts';
import { curateWindow } from '../src/curate/run.ts';
import { beginRollout } from '../src/deploy/begin.ts';
import { serveRelease } from '../src/deploy/reconcile.ts';
import { registerRelease } from '../src/deploy/register.ts';
import type { Report } from '../src/evaluate/report.ts';
import { pickWindow } from '../src/review/queue.ts';
import type { Score } from '../src/score/score.ts';
import { describeSpec } from '../src/score/weighted.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry, uuidAt } from '../src/store/fixtures.ts';
import { createKey } from '../src/store/keys.ts';
import { leading } from '../src/store/lead.ts';
import { saveLoopTurn } from '../src/store/loop-turns.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { saveReport } from '../src/store/reports.ts';
import { postgresRunStore } from '../src/store/runs.ts';
import { saveRewardSpec, saveScores } from '../src/store/scores.ts';
import { insertComparison } from '../src/store/shadows.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const taskTypes = ['status', 'refund', 'address', 'cancel', 'damaged'];
/** 0 to 1, the same for the same number. */
const noise = (n: number): number => {
  const x = Math.sin(n * 12.9898) * 43_758.5453;
  return x - Math.floor(x);
};
export const caseName = (n: number): string => `case-${String(n).padStart(6, '0')}`;

/** What nobody should be harmed by: markup, a very long message, Korean, and text from right to left. */
export const hostile = {
  id: 'hostile-1',
  script: '<script>window.harmed = true</script><img src=x onerror="window.harmed = true">',
  korean: '주문 번호 4711의 배송 상태를 알려 주세요.',
  hebrew: 'היכן החבילה שלי? הזמנה 4711',
  long: `${'All work and no play makes a long message. '.repeat(25_000)}THE END`,
};

function* turnsOf(n: number, at: number): Generator<JournalEntry> {
  const taskType = taskTypes[n % taskTypes.length]!;
  const trajectory = caseName(n);
  const isFailed = n % 41 === 0;
  const withCandidate = n % 4 === 0;
  const opening = `Hello, my order ${4000 + (n % 900)}: ${taskType}, please. Write to [EMAIL_1].`;
  const metadata = { task_type: taskType };
  const tool = {
    role: 'assistant',
    content: null,
    tool_calls: [
      {
        id: 'c1',
        type: 'function',
        function: { name: 'find_order', arguments: JSON.stringify({ order: 4000 + (n % 900) }) },
      },
    ],
  };
  const first = [
    { role: 'system', content: 'You are the support desk of a shop.' },
    { role: 'user', content: opening },
  ];
  const shared = {
    ...{
      trajectory,
      agent: 'desk',
      user: `user-${n % 400}`,
      upstream: 'vllm',
      model: 'small',
      keys: [`order:${4000 + (n % 900)}`],
    },
    release: withCandidate ? 'v2' : 'v1',
    redactions: { email: 1 },
  };
  yield entry.turn({
    ...{
      ...shared,
      id: uuidAt(at),
      startedAt: at,
      latencyMs: 300 + 900 * noise(n),
      promptTokens: 140,
      completionTokens: 24,
    },
    request: { model: 'desk', metadata, messages: first },
    choices: [
      {
        index: 0,
        message: { ...tool, reasoning_content: `The customer asks about ${taskType}; I look the order up.` },
        finishReason: 'tool_calls',
      },
    ],
  });
  yield entry.turn({
    ...{
      ...shared,
      id: uuidAt(at + 2000),
      startedAt: at + 2000,
      latencyMs: 400 + 1500 * noise(n + 7),
      promptTokens: 190,
      completionTokens: 42,
    },
    ...(isFailed ? { status: 'error' as const, httpStatus: 502, error: 'The upstream closed the connection.' } : {}),
    request: {
      model: 'desk',
      metadata,
      messages: [
        ...first,
        tool,
        { role: 'tool', tool_call_id: 'c1', content: '{"status":"shipped","eta":"tomorrow"}' },
      ],
    },
    choices: isFailed
      ? []
      : [
          {
            index: 0,
            message: { role: 'assistant', content: 'It was shipped and will be there tomorrow.' },
            finishReason: 'stop',
          },
        ],
  });
  if (n % 3 === 0)
    yield entry.signal({
      ...{
        id: uuidAt(at + 3000),
        identity: `vote/${trajectory}`,
        target: { kind: 'trajectory', id: trajectory },
        user: `user-${n % 400}`,
      },
      ...{ value: noise(n + 3) < (withCandidate ? 0.85 : 0.7) ? 1 : 0, at: at + 3000, receivedAt: at + 3000 },
    });
  if (n % 2 === 0)
    yield entry.signal({
      ...{
        id: uuidAt(at + 4000),
        identity: `outcome/${trajectory}`,
        target: { kind: 'trajectory', id: trajectory },
        kind: 'outcome',
      },
      ...{
        name: 'resolved',
        user: null,
        value: noise(n + 5) < (withCandidate ? 0.8 : 0.6) ? 1 : 0,
        at: at + 4000,
        receivedAt: at + 4000,
      },
    });
}

function scoreOf(n: number, at: number, spec: string): Score {
  const [resolved, tools, tone] = [noise(n + 5) < 0.65 ? 1 : 0, 0.5 + noise(n + 11) / 2, 0.3 + 0.7 * noise(n + 13)];
  return {
    ...{
      agent: 'desk',
      trajectory: caseName(n),
      day: new Date(at).toISOString().slice(0, 10),
      spec,
      evidence: `e${n}`,
    },
    ...{ total: 0.5 * resolved + 0.3 * tools + 0.2 * tone, measured: 1, at: at + 5000 },
    parts: {
      resolved: {
        value: resolved,
        weight: 0.5,
        reason: resolved === 1 ? 'the outcome says so' : 'the outcome says no',
      },
      tools: { value: tools, weight: 0.3, reason: 'one call, with valid arguments' },
      tone: { value: tone, weight: 0.2, reason: 'friendly' },
    },
    turns: [],
  };
}

const comparison = (baseline: number, candidate: number, n: number) => ({
  ...{
    n,
    baseline,
    candidate,
    difference: candidate - baseline,
    p: 0.0004,
    test: 'mcnemar' as const,
    better: 40,
    worse: 6,
  },
  ...{ interval: [candidate - baseline - 0.09, candidate - baseline + 0.09] as const, detectable: 0.09 },
});

function reportOf(
  id: string,
  verdict: Report['verdict'],
  baseline: string,
  candidate: string,
  createdAt: number,
): Report {
  const tasks = Array.from({ length: 150 }, (_, n) => {
    const [before, after] = [noise(n) < 0.45 ? 1 : 0, noise(n) < 0.45 || noise(n + 1) < 0.5 ? 1 : 0];
    const reasons = {
      baseline: before === 1 ? [] : ['It gave up.'],
      candidate: after === 1 ? [] : ['The wrong order was named.'],
    };
    return { id: `golden-${n}`, type: taskTypes[n % 5]!, baseline: before, candidate: after, reasons };
  });
  return {
    ...{
      id,
      agent: 'desk',
      baseline,
      candidate,
      attempts: 1,
      temperature: 1,
      seed: 7,
      verdict,
      seconds: 12,
      createdAt,
    },
    suite: { name: 'golden', hash: 'a'.repeat(64), tasks: 150 },
    overall: comparison(0.433, 0.74, 150),
    types: Object.fromEntries(taskTypes.map((type, n) => [type, comparison(0.3 + n * 0.05, 0.6 + n * 0.05, 30)])),
    ...{ tasks, drift: 0.12, reasons: ['74.0% of the cases are solved, 43.3% before; p < 0.001.'] },
    gates: [],
  };
}

export type Seeded = { readonly trajectories: number; readonly rollout: string; readonly now: number };

export async function seed(store: Store, config: Config, trajectories: number, now = Date.now()): Promise<Seeded> {
  const agent = agentOf(config, 'desk');
  const began = (n: number) => now - minute - Math.floor(((trajectories - n) / trajectories) * 13 * day);
  for (let user = 0; user < 400; user++)
    if (user % 5 > 0) await giveConsent(store, 'desk', `user-${user}`, new Date(now - 30 * day));
  for (let from = 1; from <= trajectories; from += 250) {
    const numbers = Array.from({ length: Math.min(250, trajectories - from + 1) }, (_, i) => from + i);
    const { refused } = await writeEntries(
      store,
      numbers.flatMap((n) => [...turnsOf(n, began(n))]),
    );
    if (refused[0] !== undefined) throw new Error(refused[0].error);
  }
  await seedHostile(store, now);

  const spec = agent.reward.version;
  await saveRewardSpec(store, { version: spec, parts: describeSpec(agent.reward), at: new Date(now - 20 * day) });
  const scored = Array.from({ length: trajectories }, (_, i) => i + 1).filter((n) => n % 10 > 0);
  for (let from = 0; from < scored.length; from += 1000)
    await saveScores(
      store,
      scored.slice(from, from + 1000).map((n) => scoreOf(n, began(n), spec)),
    );

  const artifacts = openArtifacts(config);
  const register = (name: string, run?: string) =>
    registerRelease(
      { store, artifacts },
      config,
      { agent: 'desk', name, upstream: 'vllm', model: name, ...(run === undefined ? {} : { run }) },
      'seed',
      now - 12 * day,
    );
  const runs = postgresRunStore(store);
  const spent = { seconds: 741, tokens: 1_054_000, money: 3.1 };
  for (const [id, status] of [
    ['desk-turn-1', 'finished'],
    ['desk-turn-2', 'running'],
  ] as const) {
    const createdAt = status === 'finished' ? now - 9 * day : now - hour;
    await runs.create({
      ...{
        id,
        agent: 'desk',
        recipe: 'sft-grpo',
        settings: { dataset: 'desk-v1' },
        base: 'base',
        folder: 'runs',
        seed: 1,
        steps: 73,
        step: 0,
      },
      ...{
        status: 'running',
        reason: null,
        budget: { seconds: 7200 },
        spent,
        internal: false,
        request: null,
        owner: null,
        heartbeatAt: createdAt,
        createdAt,
      },
    });
    for (let step = 0; step < (status === 'finished' ? 73 : 30); step++)
      await runs.saveStep(
        id,
        {
          ...{ step, stage: step < 20 ? 'sft' : 'grpo', stageStep: step < 20 ? step : step - 20 },
          values: {
            reward_mean: 0.42 + 0.3 * (1 - Math.exp(-step / 25)) + 0.04 * noise(step),
            kl: 0.002 * step,
            entropy: 1.2 - 0.006 * step,
            loss: 2 - 0.015 * step,
          },
        },
        spent,
        createdAt + step * 10_000,
      );
    if (status === 'finished') await runs.setStatus(id, 'finished', null, createdAt + hour);
  }
  const base = await register('v1');
  await serveRelease(store, base, 'seed', now - 12 * day, { reason: 'The first.' });
  await register('v2', 'desk-turn-1');
  await saveReport(store, reportOf('report-0000000000000001', 'pass', 'v1', 'v2', now - 2 * day));
  await register('v3');
  await saveReport(store, reportOf('report-0000000000000002', 'inconclusive', 'v1', 'v3', now - 3 * hour));

  // Really curated, so that there is a file to read. Its conversations are alike, so few are kept.
  const { reward, curate: settings, pii } = agent;
  const window = { agent: 'desk', spec: reward, since: new Date(now - 13 * day), until: new Date(now - 9 * day) };
  await curateWindow(store, artifacts, {
    ...{ ...window, now: new Date(now - 9 * day), settings, pii: settledPii(pii), seed: 1, refuseEmpty: false },
  });

  const rollout = await beginRollout(
    store,
    agent,
    { candidate: 'v2', report: 'report-0000000000000001', id: 'v2-r1', actor: 'seed' },
    async () => {},
    now - day,
  );
  for (let n = 0; n < 60; n++)
    await insertComparison(store, {
      ...{
        id: uuidAt(now - day + n * minute),
        parent: uuidAt(now - day + n),
        rollout: rollout.id,
        agent: 'desk',
        at: now - day + n * minute,
      },
      ...{
        failed: n % 30 === 0,
        agreed: n % 30 === 0 ? null : n % 5 > 0,
        similarity: n % 30 === 0 ? null : 0.4 + 0.5 * noise(n),
      },
      ...{
        baselineMs: 500 + 100 * noise(n),
        candidateMs: 450 + 120 * noise(n + 1),
        baselineTokens: 40,
        candidateTokens: 44,
      },
    });

  await leading(store, 'loop/desk', 'seed', async (lead) => {
    for (const [number, before, after] of [
      [1, 0.41, 0.43],
      [2, 0.433, 0.74],
    ] as const)
      await saveLoopTurn(
        store,
        {
          ...{
            agent: 'desk',
            number,
            seed: number,
            done: ['collect', 'score', 'curate', 'train', 'evaluate', 'deploy'],
          },
          ...{ startedAt: now - (20 - number * 7) * day, endedAt: now - (20 - number * 7) * day + 3 * hour },
          state: {
            begun: { trigger: 'schedule', reason: 'A week has passed.' },
            collect: { since: now - 27 * day, until: now - 20 * day, conversations: 2000 },
            score: { trajectories: 2000, scored: 1990 },
            curate: { dataset: 'desk-v1', rows: 500, funnel: [{ gate: 'consent', entered: 2000, passed: 1600 }] },
            train: { run: 'desk-turn-1', recipe: 'sft-grpo', steps: 73, tokens: 1_054_000, checkpoint: 'x' },
            evaluate: {
              report: 'report-0000000000000001',
              verdict: number === 1 ? 'inconclusive' : 'pass',
              before,
              after,
              interval: [after - before - 0.08, after - before + 0.08],
              p: 0.01,
              reasons: [],
            },
            deploy: { rollout: null, phase: number === 1 ? 'rolled-back' : 'promoted', release: 'v2', reasons: [] },
            spent: { seconds: 10_800, tokens: 1_054_000, money: 12.4 },
          },
        },
        lead,
      );
  });
  await pickWindow(store, agent, { since: new Date(now - 13 * day), until: new Date(now) }, new Date(now));
  await createKey(store, { name: 'the shop', agent: 'desk' });
  return { trajectories: trajectories + 1, rollout: rollout.id, now };
}

async function seedHostile(store: Store, now: number): Promise<void> {
  const messages = [hostile.script, hostile.korean, hostile.hebrew, hostile.long].map((content) => ({
    role: 'user',
    content,
  }));
  const { refused } = await writeEntries(store, [
    entry.turn({
      ...{
        trajectory: hostile.id,
        id: uuidAt(now - 30_000),
        startedAt: now - 30_000,
        agent: 'desk',
        user: 'user-1',
        release: 'v1',
      },
      request: { model: 'desk', messages },
      choices: [{ index: 0, message: { role: 'assistant', content: hostile.script }, finishReason: 'stop' }],
    }),
    entry.signal({
      ...{
        id: uuidAt(now - 20_000),
        identity: 'vote/hostile',
        target: { kind: 'trajectory', id: hostile.id },
        user: 'user-1',
      },
      ...{ value: 0, comment: hostile.script, at: now - 20_000, receivedAt: now - 20_000 },
    }),
  ]);
  if (refused[0] !== undefined) throw new Error(refused[0].error);
}
