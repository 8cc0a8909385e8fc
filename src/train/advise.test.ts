import { describe, expect, it } from 'vitest';
import { adviseRecipe } from './advise.ts';
import { accelerators, duration, estimateCost } from './cost.ts';

const facts = { pairs: 0, examples: 0, environment: true };

describe('advice', () => {
  it.each([
    [{ ...facts, pairs: 1_999 }, 'grpo', /fewer than 2,000/],
    [{ ...facts, pairs: 3_000 }, 'grpo', /between 2,000 and 5,000/],
    [{ ...facts, pairs: 3_000, environment: false }, 'dpo', /no environment/],
    [{ ...facts, pairs: 5_000 }, 'dpo', /between 5,000 and 10,000/],
    [{ ...facts, pairs: 10_000 }, 'dpo', /10,000 preference pairs/],
    [{ ...facts, pairs: 10_001 }, 'rft', /more than 10,000/],
    [{ ...facts, pairs: 20_000, environment: false }, 'dpo', /must play/],
    [{ ...facts, environment: false, examples: 400 }, 'sft', /400 examples/],
    [{ ...facts, environment: false }, null, /nothing to train on/],
    [{ ...facts, examples: 50, validFormat: 0.6 }, 'sft-grpo', /60% of the answers can be read/],
    [{ ...facts, examples: 50, validFormat: 0.95 }, 'sft-grpo', /First SFT on 50 examples/],
    [{ ...facts, environment: false, examples: 400, pairs: 100 }, 'sft-dpo', /too few to carry it alone/],
    [{ ...facts, environment: false, pairs: 100 }, 'dpo', /close look/],
    [{ ...facts, environment: false, pairs: 99 }, null, /nothing to train on/],
    [{ ...facts, environment: false, examples: 400, validFormat: 0.5 }, 'sft', /50%/],
    [{ ...facts, pairs: 6_000, examples: 50, validFormat: 0.5 }, 'sft-dpo', /50%/],
    [{ ...facts, examples: 50, success: 0.01 }, 'sft-grpo', /groups where nobody succeeds/],
  ] as const)('for %j is %s, and says why', (given, recipe, reason) => {
    const advice = adviseRecipe(given);
    expect(advice.recipe).toBe(recipe);
    expect(advice.reasons.join(' ')).toMatch(reason);
  });
});

describe('the cost estimate', () => {
  it('follows from tokens, parameters and the price table', () => {
    // SFT of 1B parameters on 1M tokens: 6e15 operations at 0.35 · 989e12 per second is 17.3 s of an H100.
    const cost = estimateCost([{ work: { sampled: 0, forwarded: 0, trained: 1e6 } }], 1e9);
    expect(cost.gpuHours * 3600).toBeCloseTo(17.33, 1);
    expect(cost.dollars).toBeCloseTo((cost.gpuHours * 3) as number, 6);
    expect(cost.sentence).toMatch(/1.0M tokens: under 0.01 H100 hours by arithmetic/);
  });

  it('costs more where more is sampled, and less on a cheaper card of the same speed', () => {
    const learned = [{ work: { sampled: 0, forwarded: 0, trained: 1e9 } }];
    const sft = estimateCost(learned, 8e9);
    // A token that is sampled is 2 operations at a tenth of the card, one that is learned from 6 at 0.35 of it.
    const sampled = estimateCost([{ work: { sampled: 1e9, forwarded: 0, trained: 0 } }], 8e9);
    expect(sampled.gpuHours / sft.gpuHours).toBeCloseTo(20 / (6 / 0.35), 6);
    const cheap = estimateCost(learned, 8e9, { ...accelerators[2]!, dollarsPerHour: 1 });
    expect(cheap.dollars * 3).toBeCloseTo(sft.dollars, 6);
    expect(duration(3725)).toBe('1 h 2 min');
  });
});
