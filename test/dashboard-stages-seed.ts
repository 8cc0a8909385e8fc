/**
 * What Score, Curate, Train and Evaluate show besides dashboard-seed.ts: labels, an older reward, what a judge cost, a key whose
 * scores jumped, somebody to forget, a run with clocks and kinds of task, a report with gates and what users saw of it.
 */
import { openArtifacts } from '../src/artifacts/open.ts';
import { importLabels } from '../src/collect/import-labels.ts';
import { settledPii } from '../src/collect/redact/settings.ts';
import type { Config } from '../src/config.ts';
import { agentOf } from '../src/config.ts';
import { curateWindow } from '../src/curate/run.ts';
import { usersFrom } from '../src/deploy/users.ts';
import type { Gate } from '../src/evaluate/gates/gate.ts';
import type { Report } from '../src/evaluate/report.ts';
import { askErasure } from '../src/privacy/erase.ts';
import { scoreWindow } from '../src/score/run.ts';
import { entry, uuidAt } from '../src/store/fixtures.ts';
import { addJudging } from '../src/store/judging.ts';
import { createKey } from '../src/store/keys.ts';
import { leading } from '../src/store/lead.ts';
import { saveLoopTurn } from '../src/store/loop-turns.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { saveReport } from '../src/store/reports.ts';
import { postgresRunStore } from '../src/store/runs.ts';
import { saveRewardSpec, saveScores } from '../src/store/scores.ts';
import type { KeptEpisode } from '../src/train/kept-episodes.ts';
import { caseName, hostile } from './dashboard-seed.ts';

const hour = 3_600_000;
const day = 24 * hour;
export const oldSpec = 'an-older-reward';
export const stagesRun = 'desk-practice';
export const gatedReport = 'report-0000000000000009';

const wave = (n: number): number => (1 + Math.sin(n * 1.7)) / 2;

async function seedLabels(store: Store, now: number): Promise<void> {
  const labels = Array.from({ length: 60 }, (_, i) => ({
    ...{ trajectory: caseName(i + 1), score: Math.round(wave(i) * 100) / 100, reviewer: `r${i % 3}` },
  }));
  const { bad } = await importLabels(store, { agent: 'desk', secret: 's'.repeat(32), now: new Date(now), labels });
  if (bad > 0) throw new Error(`${bad} labels were refused.`);
}

/** Two keys, the same kind of task: the scores of one jump, those of the other do not. */
async function seedShift(store: Store, spec: string, now: number): Promise<string> {
  const keys = [];
  for (const name of ['steady', 'jumping']) keys.push((await createKey(store, { agent: 'desk', name })).key.id);
  for (const [k, key] of keys.entries())
    for (const [w, from] of [now - 12 * day, now - 3 * day].entries()) {
      const numbers = Array.from({ length: 24 }, (_, i) => i);
      const name = (i: number) => `shift-${k}-${w}-${i}`;
      const at = (i: number) => from + i * 60_000 + k * 1000;
      const entries = numbers.map((i) =>
        entry.turn({
          ...{
            trajectory: name(i),
            id: uuidAt(at(i)),
            startedAt: at(i),
            agent: 'desk',
            user: `shift-${i}`,
            release: 'v1',
          },
          ...{ clientKey: key, request: { model: 'desk', metadata: { task_type: 'refund' }, messages: [] } },
        }),
      );
      const { refused } = await writeEntries(store, entries);
      if (refused[0] !== undefined) throw new Error(refused[0].error);
      const value = (i: number) => (k === 1 && w === 1 ? 0.9 : 0.3) + 0.02 * wave(i);
      await saveScores(
        store,
        numbers.map((i) => ({
          ...{ agent: 'desk', trajectory: name(i), day: new Date(at(i)).toISOString().slice(0, 10), spec },
          ...{ evidence: name(i), total: value(i), measured: 1, at: at(i), turns: [] },
          parts: { resolved: { value: value(i), weight: 0.5, reason: 'seeded' } },
        })),
      );
    }
  return keys[1]!;
}

const keptAt = (step: number): KeptEpisode[] =>
  [1, 0.8, 0.3, 0].map((reward, place) => ({
    ...{ task: `train-refund-${step}`, taskType: 'refund', attempt: (place * 3) % 8, reward, success: reward > 0.5 },
    ...{ outcome: place === 3 ? 'limit' : 'done', reasons: place === 3 ? ['still talking after 8 turns'] : [] },
    messages: [
      { role: 'system', text: 'You help customers of a shop.' },
      { role: 'user', text: place === 1 ? hostile.hebrew : hostile.korean },
      {
        ...{ role: 'assistant', text: '', calls: [{ name: 'find_order', input: '{"order":"4711"}' }] },
        ...{ reasoning: 'The order first.', reward: 1, reasons: [] },
      },
      { role: 'tool', text: '{"status":"shipped"}' },
      { role: 'assistant', text: place === 2 ? hostile.script : 'It is on its way.', reward, reasons: ['last words'] },
    ],
    leftOut: place === 3 ? 4 : 0,
  }));

async function seedRun(store: Store, now: number): Promise<void> {
  const runs = postgresRunStore(store);
  const spent = { seconds: 1840, tokens: 2_400_000, money: 1.28 };
  await runs.create({
    ...{ id: stagesRun, agent: 'desk', recipe: 'grpo', settings: { dataset: 'desk-v1', attempts: 8 }, base: 'base' },
    ...{
      folder: 'runs',
      seed: 1,
      steps: 120,
      step: 0,
      status: 'running',
      reason: null,
      budget: { money: 5 },
      spent,
      internal: false,
    },
    ...{ request: null, owner: null, heartbeatAt: now - 2 * hour, createdAt: now - 3 * hour },
  });
  for (let step = 0; step < 80; step++)
    await runs.saveStep(
      stagesRun,
      {
        ...{ step, stage: 'grpo', stageStep: step },
        values: {
          ...{ reward_mean: 0.4 + 0.005 * step + 0.05 * wave(step), success: 0.35 + 0.005 * step, kl: 0.001 * step },
          ...{ entropy: 1.3 - 0.007 * step, loss: 0.02 * wave(step), grad_norm: 0.4 + 0.3 * wave(step) },
          ...{ zero_variance_fraction: 0.1 + 0.002 * step, clip_fraction: 0.02 * wave(step), sampler_gap: 0.004 },
          ...{ length: 90 + 20 * wave(step), tokens_per_second: 1300 + 200 * wave(step), seconds: 23 },
          ...{ sampling_seconds: 11, environment_seconds: 3, training_seconds: 7.5, waiting_seconds: 1 },
          ...{ pawl_seconds: 0.5, ...(step % 10 === 0 ? { validation_success: 0.36 + 0.004 * step } : {}) },
        },
        taskTypes: {
          status: { reward: 0.8, success: 0.75, attempts: 16 },
          refund: { reward: 0.5, success: 0.44, attempts: 16 },
        },
      },
      spent,
      now - 2 * hour,
      step % 20 === 19 ? keptAt(step) : [],
    );
  for (const step of [40, 80])
    await runs.saveCheckpoint({
      ...{ run: stagesRun, step, kind: 'step', stage: 0, folder: `runs/${stagesRun}/step-${step}`, state: null },
      validation: 0.5 + step / 1000,
    });
}

const gates: readonly Gate[] = [
  {
    ...{ name: 'length', verdict: 'pass', baseline: 41.2, candidate: 44.8, limit: 1.5, look: [] },
    reason: 'Answers are 1.09 times as long as before, 1.5 is the limit.',
  },
  {
    ...{ name: 'refusals', verdict: 'inconclusive', baseline: 0.01, candidate: 0.06, limit: 0.05 },
    reason: '6.0% of the answers refuse, 1.0% before.',
    look: [
      { task: 'golden-3', attempt: 0, answer: 'I cannot help with that.' },
      { task: 'golden-8', attempt: 1, answer: hostile.script },
    ],
  },
];

async function seedReport(store: Store, now: number): Promise<void> {
  const tasks = Array.from({ length: 120 }, (_, n) => {
    const [baseline, candidate] = [wave(n) < 0.5 ? 1 : 0, wave(n) < 0.5 ? (n % 17 === 0 ? 0 : 1) : n % 2];
    const reasons = {
      baseline: baseline === 1 ? [] : ['It gave up.'],
      candidate: candidate === 1 ? [] : [n === 0 ? hostile.script : hostile.korean],
    };
    return { id: `golden-${n}`, type: ['status', 'refund', 'cancel'][n % 3]!, baseline, candidate, reasons };
  });
  const of = (baseline: number, candidate: number, half: number, n: number) => ({
    ...{ n, baseline, candidate, difference: candidate - baseline, p: 0.002, test: 'mcnemar' as const },
    ...{ interval: [candidate - baseline - half, candidate - baseline + half] as const, detectable: 0.08 },
    ...{ better: 30, worse: 4, holm: 0.006 },
  });
  const report: Report = {
    ...{ id: gatedReport, agent: 'desk', baseline: 'v1', candidate: 'v2', attempts: 2, temperature: 1, seed: 3 },
    ...{ suite: { name: 'golden', hash: 'c'.repeat(64), tasks: 120 }, overall: of(0.5, 0.71, 0.08, 120) },
    types: { status: of(0.6, 0.9, 0.12, 40), refund: of(0.5, 0.52, 0.14, 40), cancel: of(0.6, 0.45, 0.13, 40) },
    ...{ tasks, drift: 0.084, gates: [...gates], verdict: 'inconclusive', seconds: 41, createdAt: now - hour },
    reward: { n: 120, baseline: 0.61, candidate: 0.7, difference: 0.09, interval: [0.05, 0.13], p: 0.001 },
    passK: [{ k: 2, baseline: 0.38, candidate: 0.6, interval: [0.1, 0.33] }],
    reasons: ['Refusals rose from 1.0% to 6.0%: look at the answers.', '71.0% of the cases are solved, 50.0% before.'],
  };
  await saveReport(store, report);
  const served = (success: number, n: number) => ({
    outcome: { n, sum: success * n, squares: success * n },
    slices: [],
  });
  await leading(store, 'loop/desk', 'seed', (lead) =>
    saveLoopTurn(
      store,
      {
        ...{ agent: 'desk', number: 3, seed: 3, done: ['collect', 'score', 'curate', 'train', 'evaluate', 'deploy'] },
        ...{ startedAt: now - 5 * hour, endedAt: now - hour },
        state: {
          begun: { trigger: 'person', reason: 'Somebody asked.' },
          collect: { since: now - 7 * day, until: now - 5 * hour, conversations: 300 },
          score: { trajectories: 300, scored: 290 },
          curate: { dataset: 'desk-v1', rows: 500, funnel: [] },
          train: { run: 'desk-turn-1', recipe: 'sft-grpo', steps: 73, tokens: 1_054_000, checkpoint: 'x' },
          evaluate: {
            ...{
              report: gatedReport,
              verdict: 'inconclusive',
              before: 0.5,
              after: 0.71,
              interval: [0.13, 0.29],
              p: 0.002,
            },
            reasons: [],
          },
          deploy: { rollout: null, phase: 'promoted', release: 'v2', reasons: [] },
          users: usersFrom('resolved', served(0.6, 410), served(0.61, 220), served(0.74, 231)),
        },
      },
      lead,
    ),
  );
}

/** Two that were really curated, so that there is something to check and to compare. */
async function seedDatasets(store: Store, config: Config, now: number): Promise<readonly string[]> {
  const agent = agentOf(config, 'desk');
  const artifacts = openArtifacts(config);
  const { name, reward: spec, curate, pii } = agent;
  const window = { agent: name, spec, since: new Date(now - 11 * day), now: new Date(now) };
  await scoreWindow(store, { ...window, until: new Date(now - 5 * day), origin: curate.on, services: {} });
  const made = [];
  for (const until of [now - 8 * day, now - 5 * day]) {
    const select = { ...window, until: new Date(until), settings: curate, pii: settledPii(pii), seed: 0 };
    made.push((await curateWindow(store, artifacts, { ...select, refuseEmpty: true })).id);
  }
  return made;
}

export type SeededStages = { readonly shiftedKey: string; readonly datasets: readonly string[] };

export async function seedStages(store: Store, config: Config, now: number): Promise<SeededStages> {
  const { reward } = agentOf(config, 'desk');
  await seedLabels(store, now);
  await saveRewardSpec(store, { version: oldSpec, parts: [], at: new Date(now - 40 * day) });
  await saveScores(
    store,
    Array.from({ length: 60 }, (_, i) => {
      const n = i + 1;
      const value = wave(n);
      return {
        ...{ agent: 'desk', trajectory: caseName(n), day: new Date(now - 13 * day).toISOString().slice(0, 10) },
        ...{ spec: oldSpec, evidence: `old-${n}`, total: value, measured: 1, at: now - 12 * day, turns: [] },
        parts: { resolved: { value, weight: 1, reason: 'the outcome' } },
      };
    }),
  );
  const judged = { agent: 'desk', upstream: 'vllm', model: 'judge-large' };
  await addJudging(store, judged, { calls: 412, promptTokens: 903_000, completionTokens: 41_000, money: 2.37 });
  const shiftedKey = await seedShift(store, reward.version, now);
  await askErasure(store, { user: 'a'.repeat(64), agent: null, actor: 'seed' });
  await seedRun(store, now);
  await seedReport(store, now);
  return { shiftedKey, datasets: await seedDatasets(store, config, now) };
}
