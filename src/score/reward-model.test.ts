/** The reward model: its maths by hand, and a toy task that the embedded engine must learn. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readModelFiles, writeCheckpoint } from '../engine/checkpoint.ts';
import { newModel } from '../engine/new-model.ts';
import { createOnnxEngine } from '../engine/onnx/engine.ts';
import { tokenizerFromFiles } from '../engine/tokenizer.ts';
import { seeded } from './resample.ts';
import {
  calibrate,
  calibrated,
  calibrationError,
  pairLoss,
  regressionLoss,
  sigmoid,
  tokenGradients,
  verdictData,
} from './reward-model.ts';
import { type Example, pairsOf, type RewardModelReport, refusalOf, trainRewardModel } from './train-reward-model.ts';

describe('the losses', () => {
  test('of regression: ln 2 where it does not know, and the slope is what it says less what is so', () => {
    expect(regressionLoss([0], [1])).toEqual({ loss: Math.log(2), slopes: [-0.5] });
    expect(regressionLoss([0, 0], [0.5, 0]).slopes).toEqual([0, 0.5]);
    expect(regressionLoss([800, -800], [1, 0]).loss).toBeCloseTo(0, 12);
  });

  test('of pairs: only the lead of the better counts', () => {
    expect(pairLoss([3, 3])).toEqual({ loss: Math.log(2), slopes: [-0.5, 0.5] });
    expect(pairLoss([1001, 1000]).loss).toBeCloseTo(pairLoss([1, 0]).loss, 12);
    expect(pairLoss([1, 0]).slopes[1]).toBeCloseTo(sigmoid(-1), 12);
  });

  test('their slopes are those of finite differences', () => {
    const r = [0.3, -1.2, 2, 0.1];
    for (const of of [(x: readonly number[]) => regressionLoss(x, [1, 0, 0.3, 0.8]), pairLoss])
      for (const [i] of r.entries()) {
        const moved = (by: number) => of(r.map((x, j) => (i === j ? x + by : x))).loss;
        expect(of(r).slopes[i]).toBeCloseTo((moved(1e-5) - moved(-1e-5)) / 2e-5, 6);
      }
  });

  test('reach the verdict alone', () => {
    const data = verdictData([5, 6, 7], { plus: 1, minus: 2 });
    expect(data.map(({ targets }) => targets)).toEqual([
      [6, 7, 1],
      [6, 7, 2],
    ]);
    expect(tokenGradients(data, [0.5]).map((one) => [...one])).toEqual([
      [0, 0, 0.5],
      [0, 0, -0.5],
    ]);
  });
});

describe('calibration', () => {
  test('finds the scale that made the labels, and an error near nothing', () => {
    const draw = seeded(5);
    const r = Array.from({ length: 2000 }, () => 8 * draw() - 4);
    const labels = r.map((x) => (draw() < sigmoid(0.5 * x - 1) ? 1 : 0));
    const { a, b } = calibrate(r, labels);
    expect(a).toBeCloseTo(0.5, 1);
    expect(b).toBeCloseTo(-1, 0);
    const before = calibrationError(r.map(sigmoid), labels)!;
    const after = calibrationError(
      r.map((x) => calibrated(x, { a, b })),
      labels,
    )!;
    expect(after).toBeLessThan(0.05);
    expect(before).toBeGreaterThan(0.1);
    // far from 0, as pairs leave them
    const far = calibrate(
      r.map((x) => x + 500),
      labels,
    );
    expect(far.a).toBeCloseTo(a, 6);
    expect(calibrated(r[0]! + 500, far)).toBeCloseTo(calibrated(r[0]!, { a, b }), 6);
  });

  test('the error of a coin that says 0.9 is 0.4, and an opinion that is upside down is not turned round', () => {
    expect(calibrationError([0.9, 0.9], [1, 0])).toBeCloseTo(0.4, 12);
    expect(calibrationError([], [])).toBeNull();
    expect(calibrate([3, 2, -2, -3], [0, 0, 1, 1]).a).toBe(0);
  });
});

test('pairs are of one task and far enough apart', () => {
  const of = (group: string, label: number): Example => ({ group, label, tokens: [] });
  const found = pairsOf([of('a', 1), of('a', 0.9), of('a', 0.1), of('b', 0.5), of('b', 0.4)]);
  expect(found.map(({ label }) => label)).toEqual([1, 0.1, 0.9, 0.1]);
});

test('the gate lets through what orders and says what it means, and names what does not', () => {
  const good: RewardModelReport = {
    ...{ method: 'regression', trained: 1, judged: 1, losses: [], spearman: 0.9, errorBefore: 0.2 },
    ...{ auc: 0.9, low: 0.8, high: 1, calibrationError: 0.05, calibration: { a: 1, b: 0 } },
  };
  expect(refusalOf(good)).toBeNull();
  expect(refusalOf({ ...good, auc: 0.65 })).toMatch('0.650');
  expect(refusalOf({ ...good, low: 0.45 })).toMatch('chance');
  expect(refusalOf({ ...good, calibrationError: 0.3 })).toMatch('off by');
  expect(refusalOf({ ...good, auc: null })).toMatch('only good or only bad');
});

describe('on a toy task', () => {
  /** Good answers say yes somewhere; bad ones say no. */
  const toy = async (method: 'regression' | 'pairs', labelOf: (good: boolean) => number) => {
    const folder = await mkdtemp(join(tmpdir(), 'pawl-reward-'));
    const engine = createOnnxEngine({ threads: 1 });
    try {
      const spec = { hidden: 32, layers: 1, heads: 2, vocabulary: 300, context: 64 };
      await writeCheckpoint(join(folder, 'base'), newModel(spec, { seed: 2, texts: [] }));
      const tokenizer = tokenizerFromFiles(await readModelFiles(join(folder, 'base')))!;
      await engine.load('toy', join(folder, 'base'));
      const draw = seeded(9);
      const examples = Array.from({ length: 240 }, (_, k): Example => {
        const good = draw() < 0.5;
        const filler = Array.from({ length: 1 + Math.floor(draw() * 6) }, () => 'abcdef'[Math.floor(draw() * 6)]).join(
          '',
        );
        const text = `${filler} ${good ? 'yes' : 'no'}\nverdict: `;
        return { group: `t${k % 60}`, label: labelOf(good), tokens: tokenizer.encodePlain(text) };
      });
      const [plus, minus] = [tokenizer.encodePlain('+')[0]!, tokenizer.encodePlain('-')[0]!];
      return await trainRewardModel({
        ...{ engine, model: 'toy', verdicts: { plus, minus }, examples, method, epochs: 6, learningRate: 0.01 },
      });
    } finally {
      await engine.close();
      await rm(folder, { recursive: true, force: true });
    }
  };

  test.each(['regression', 'pairs'] as const)('it learns by %s, and passes its gate', async (method) => {
    const report = await toy(method, (good) => (good ? 0.9 : 0.1));
    expect(report.losses.at(-1)!).toBeLessThan(report.losses[0]!);
    expect(report.auc!).toBeGreaterThan(0.9);
    expect(refusalOf(report)).toBeNull();
  });

  test('labels that follow nothing teach nothing, and it is refused', async () => {
    const coin = seeded(4);
    expect(refusalOf(await toy('regression', () => (coin() < 0.5 ? 1 : 0)))).not.toBeNull();
  });
});
