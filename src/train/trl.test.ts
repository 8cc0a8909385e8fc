/**
 * One step of SFT, DPO and GRPO on a fixed batch, against figures recorded from TRL's own loss code with torch's autograd
 * (scripts/record-train-fixture.py): the loss, the gradient, and the weights after one AdamW step.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Attempt } from './attempt.ts';
import { clipBounds } from './clip.ts';
import type { WrittenTurn } from './datum.ts';
import { dpo } from './dpo.ts';
import { TabularEngine } from './fixtures/tabular-engine.ts';
import recorded from './fixtures/trl.json' with { type: 'json' };
import { grpo, policyGradient, policyRows } from './grpo.ts';
import { type Example, sft } from './sft.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-trl-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { beta1, beta2, eps, learningRate } = recorded.adam;
const adam = { beta1, beta2, eps };
const schedule = { peak: learningRate, shape: 'constant', warmup: 0, floor: 1 } as const;

/** Runs of own tokens become turns; what lies between is context. `logprobs` are of targets, so one shorter. */
function turnsOf(index: number, logprobs?: readonly number[]): WrittenTurn[] {
  const { tokens, own } = recorded.sequences[index]!;
  const turns: WrittenTurn[] = [];
  for (let i = 0; i < tokens.length; i++) {
    if (!own[i] || own[i - 1]) continue;
    let end = i;
    while (own[end]) end++;
    turns.push({
      prompt: tokens.slice(0, i),
      completion: tokens.slice(i, end),
      ...(logprobs ? { logprobs: logprobs.slice(i - 1, end - 1) } : {}),
    });
  }
  return turns;
}

function engineWith(table: readonly (readonly number[])[]): TabularEngine {
  const engine = new TabularEngine(table.length);
  engine.create('m', table);
  return engine;
}

async function startFolder(table: readonly (readonly number[])[], name: string): Promise<string> {
  const engine = engineWith(table);
  await engine.save('m', join(folder, name));
  return join(folder, name);
}

function expectClose(actual: readonly (readonly number[])[], expected: readonly (readonly number[])[]) {
  for (const [i, row] of expected.entries())
    for (const [j, value] of row.entries()) expect(Math.abs(actual[i]![j]! - value)).toBeLessThan(1e-4);
}

/** Stops the engine short of the optimizer step, to look at the gradient; then lets it go on. */
function watchGradient(engine: TabularEngine): { gradient: number[] } {
  const seen = { gradient: [] as number[] };
  const step = engine.optimStep.bind(engine);
  engine.optimStep = (name, params) => {
    seen.gradient = engine.gradient(name);
    return step(name, params);
  };
  return seen;
}

const attempts = (rewards: readonly number[], sampled: readonly (readonly number[])[]): Attempt[] =>
  rewards.map((reward, i) => ({
    id: `a${i}`,
    task: `t${Math.floor(i / 4)}`,
    taskType: 'toy',
    reward,
    success: reward === 1,
    version: 0,
    turns: turnsOf(i, sampled[i]!).map((t) => ({ ...t, logprobs: t.logprobs! })),
  }));

describe(`agreement with TRL ${recorded.recordedWith.trl}`, () => {
  it('an SFT step has TRL’s loss, gradient and weights after AdamW', async () => {
    const engine = engineWith(recorded.table);
    const seen = watchGradient(engine);
    const examples: Example[] = recorded.sequences.map((_, i) => ({
      id: `e${i}`,
      taskType: 'toy',
      quality: 1,
      turns: turnsOf(i),
    }));
    const stage = await sft(examples, { epochs: 1, batchSize: 8, schedule, adam }).begin({
      engine,
      model: 'm',
      start: '',
      seed: 1,
    });
    const { values } = await stage.step(0);
    expect(values.loss).toBeCloseTo(recorded.sft.loss, 5);
    expectClose([seen.gradient], [recorded.sft.gradient.flat()]);
    expectClose(engine.table('m'), recorded.sft.after);
  });

  it('a DPO step has TRL’s loss, gradient and weights after AdamW', async () => {
    const engine = engineWith(recorded.table);
    const seen = watchGradient(engine);
    const pairs = recorded.dpo.pairs.map(([c, r], i) => ({
      id: `p${i}`,
      taskType: 'toy',
      chosen: turnsOf(c!),
      rejected: turnsOf(r!),
      gap: 1,
    }));
    const stage = await dpo(pairs, {
      beta: recorded.dpo.beta,
      imitation: 0,
      epochs: 1,
      batchSize: 4,
      schedule,
      adam,
    }).begin({
      engine,
      model: 'm',
      start: await startFolder(recorded.reference, 'dpo'),
      seed: 1,
    });
    const { values } = await stage.step(0);
    expect(values.loss).toBeCloseTo(recorded.dpo.loss, 5);
    expectClose([seen.gradient], [recorded.dpo.gradient.flat()]);
    expectClose(engine.table('m'), recorded.dpo.after);
  });

  it('an on-policy GRPO step, one of its groups flat, has TRL’s loss, gradient and weights after AdamW', async () => {
    const wanted = recorded.grpo.onPolicy;
    const engine = engineWith(recorded.table);
    const seen = watchGradient(engine);
    const all = attempts(wanted.rewards, wanted.sampled);
    const stage = await grpo(
      { tasks: 2, play: async ({ tasks }) => tasks.map((t) => all.slice(t * 4, t * 4 + 4)) },
      {
        steps: 1,
        tasksPerStep: 2,
        attempts: 4,
        kl: { coefficient: 0 },
        entropy: 0,
        lengthNormaliser: wanted.lengthNormaliser,
        schedule,
        adam,
      },
    ).begin({ engine, model: 'm', start: '', seed: 1 });
    const { values } = await stage.step(0);
    expect(values.zero_variance_fraction).toBe(0.5);
    expect(values.loss).toBeCloseTo(wanted.loss, 5);
    expectClose([seen.gradient], [wanted.gradient.flat()]);
    expectClose(engine.table('m'), wanted.after);
  });

  it('an off-policy GRPO update has TRL’s loss and gradient: clip-higher and truncated importance weights', async () => {
    const wanted = recorded.grpo.offPolicy;
    const engine = engineWith(recorded.table);
    const all = attempts(wanted.rewards, wanted.sampled);
    const { rows } = policyRows([all.slice(0, 4), all.slice(4)], { kind: 'attempt' });
    const update = await policyGradient(engine, 'm', rows, {
      settings: {
        clip: clipBounds(0.2, 0.28),
        truncate: 2,
        kl: { coefficient: 0 },
        entropy: 0,
      },
      normaliser: 8 * wanted.lengthNormaliser,
      old: rows.map((r, i) => Float32Array.from(wanted.old![i]!.slice(0, r.sequence.tokens.length))),
    });
    expect(update.clipped).toBeGreaterThan(0);
    expect(update.loss).toBeCloseTo(wanted.loss, 5);
    expectClose([engine.gradient('m')], [wanted.gradient.flat()]);
  });
});
