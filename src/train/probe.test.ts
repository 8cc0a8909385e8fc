import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { TabularEngine } from './fixtures/tabular-engine.ts';
import { probeEngine, shapeOf } from './probe.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-probe-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const stage = { steps: 10, work: { sampled: 16_000, forwarded: 32_000, trained: 16_000 } };

test('what is asked of the engine is as large as a step, within bounds', () => {
  // 1600 tokens a step in sequences of 200 are 8.
  expect(shapeOf([stage], 1024)).toEqual({ rows: 8, length: 200, forwards: true, prompts: 1 });
  expect(shapeOf([stage], 101)).toEqual({ rows: 16, length: 100, forwards: true, prompts: 2 });
  const large = { steps: 1, work: { sampled: 0, forwarded: 0, trained: 1e9 } };
  expect(shapeOf([large], 4096)).toEqual({ rows: 64, length: 200, forwards: false, prompts: 0 });
});

test('rates are tokens over the time of calls that are warm, and the first call is told apart', async () => {
  const engine = new TabularEngine(10);
  engine.create('base');
  await engine.save('base', folder);
  // Each call takes 1 second by this clock, the first training call 31.
  let clock = 0;
  let passes = 0;
  const slow = <A extends unknown[], T>(call: (...args: A) => T, seconds: () => number) => {
    return (...args: A): T => {
      clock += seconds();
      return call(...args);
    };
  };
  engine.forwardBackward = slow(engine.forwardBackward.bind(engine), () => (passes++ === 0 ? 31 : 1));
  engine.forward = slow(engine.forward.bind(engine), () => 0.5);
  engine.optimStep = slow(engine.optimStep.bind(engine), () => 0.25);
  engine.snapshot = slow(engine.snapshot.bind(engine), () => 0.25);
  engine.sample = slow(engine.sample.bind(engine), () => 2);
  const said: string[] = [];
  const rates = await probeEngine(
    engine,
    { base: folder },
    [stage],
    (line) => said.push(line),
    () => clock,
  );
  const { context } = (await engine.models())[0]!;
  const { rows, length } = shapeOf([stage], context);
  expect(rates.trained).toBe(rows * length);
  expect(rates.forwarded).toBe(2 * rows * length);
  expect(rates.stepSeconds).toBe(0.5);
  expect(rates.firstSeconds).toBe(30);
  expect(rates.sampled).toBeGreaterThan(0);
  expect(said.join('\n')).toMatch(/loading[\s\S]*to learn from[\s\S]*a step[\s\S]*logprobs[\s\S]*to sample/);
  // Nothing of it stays.
  expect((await engine.models()).map(({ name }) => name)).toEqual(['base']);
});

test('an engine that fails leaves no model behind, and says why', async () => {
  const engine = new TabularEngine(10);
  engine.create('base');
  await engine.save('base', folder);
  engine.optimStep = async () => {
    throw new Error('no optimizer');
  };
  await expect(probeEngine(engine, { base: folder }, [stage], () => {})).rejects.toThrow('no optimizer');
  expect((await engine.models()).map(({ name }) => name)).toEqual(['base']);
});
