import { expect, test } from 'vitest';
import { adviseOnEngine, engineLines } from './advise-engine.ts';

const rates = { parameters: 1e6, trained: 1000, forwarded: 4000, sampled: 500, stepSeconds: 1, firstSeconds: 20 };
const sft = { name: 'sft', steps: 10, work: { sampled: 0, forwarded: 0, trained: 10_000 } };
const grpo = { name: 'grpo', steps: 100, work: { sampled: 500_000, forwarded: 800_000, trained: 400_000 } };
const there = { name: 'desk at http://box', overlaps: true, computesHere: false };

test('time is tokens over measured rates, and money is time', () => {
  const advice = adviseOnEngine(there, rates, 'sft-grpo', [sft, grpo], { moneyPerHour: 3.6, lag: 0 });
  // sft: 10 s and 10 steps of 1 s. grpo: 1000 s of sampling, 200 s of forwards, 400 s of learning, 100 s of steps.
  expect(advice.stages.map(({ seconds }) => seconds)).toEqual([20, 1700]);
  expect([advice.seconds, advice.money, advice.fits]).toEqual([1740, 1.74, 'sft-grpo']);
  // Playing ahead hides the shorter of 1000 s and 600 s.
  expect(advice.reasons).toEqual(['With --lag 1 it samples while it trains: about 19 min 0 s.']);
  expect(engineLines(advice)).toEqual([
    'Engine: desk at http://box. Measured there: 1.0k tokens/s learned from, 500 tokens/s sampled, 1.00 s a step besides, 20 s once, to compile.',
    '  sft: 10 steps, 10.0k learned from: 20 s',
    '  grpo: 100 steps, 500.0k tokens sampled, 400.0k learned from: 28 min 20 s',
    'About 29 min 0 s, 1.74 by train.moneyPerHour. With --lag 1 it samples while it trains: about 19 min 0 s.',
  ]);
  expect(adviseOnEngine(there, rates, 'grpo', [grpo], { moneyPerHour: 1, lag: 1 }).stages[0]!.seconds).toBe(1100);
});

test('of a recipe that does not fit the budget, its beginning may', () => {
  const within = (hours: number) => adviseOnEngine(there, rates, 'sft-grpo', [sft, grpo], { hours, lag: 1 });
  expect(within(1).fits).toBe('sft-grpo');
  expect(within(0.1)).toMatchObject({
    fits: 'sft',
    reasons: [
      'What an hour there costs is not set (train.moneyPerHour).',
      'The budget of a run is 6 min 0 s (train.budget.hours), which sft alone fits.',
    ],
  });
  expect(within(0.001).fits).toBeNull();
});

test('an engine in this process, or one that samples where it trains, gains nothing by playing ahead', () => {
  for (const traits of [{ computesHere: true }, { overlaps: false }])
    expect(adviseOnEngine({ ...there, ...traits }, rates, 'grpo', [grpo], { moneyPerHour: 1, lag: 0 }).reasons).toEqual(
      [],
    );
});
