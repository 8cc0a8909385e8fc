import { expect, test } from 'vitest';
import { adviseStored, type StoredFacts } from './advise-stored.ts';

const stored = { trajectories: 300, consenting: 280, scored: 250, good: 200, votes: 90, corrections: 4 };
const facts: StoredFacts = { agent: 'desk', stored, dataset: null, environment: false, base: 'model' };
const dataset = { id: 'desk-v1', examples: 180, pairs: { votes: 120 } };

test.each([
  [
    'enough for a recipe',
    { ...facts, dataset },
    'sft-dpo',
    'pawl train --agent desk --dataset desk-v1',
    /120 preference pairs/,
  ],
  [
    'no model to start from',
    { ...facts, dataset, base: null },
    'sft-dpo',
    'pawl train --agent desk --dataset desk-v1 --base FOLDER',
    /Nothing says which model to train/,
  ],
  ['not curated yet', facts, null, 'pawl curate run --agent desk', /200 good conversations with consent wait/],
  [
    'an environment alone',
    { ...facts, stored: { ...stored, good: 0 }, environment: true },
    'grpo',
    'pawl train --agent desk',
    /GRPO/,
  ],
  [
    'no traffic',
    { ...facts, stored: { ...stored, trajectories: 0, good: 0 } },
    null,
    'pawl serve',
    /No conversation is recorded/,
  ],
  [
    'nobody agreed',
    { ...facts, stored: { ...stored, consenting: 0, good: 0 } },
    null,
    'pawl consent give USER --agent desk',
    /None of 300/,
  ],
  [
    'nothing scored',
    { ...facts, stored: { ...stored, scored: 0, good: 0 } },
    null,
    'pawl score run --agent desk',
    /None has a score/,
  ],
  ['nothing good', { ...facts, stored: { ...stored, good: 0 } }, null, 'pawl curate run --agent desk', /minScore/],
] as const)('%s: says which recipe, why, and what to run next', (_name, given, recipe, next, reason) => {
  const advice = adviseStored(given);
  expect([advice.recipe, advice.next]).toEqual([recipe, next]);
  expect(advice.reasons.join(' ')).toMatch(reason);
});
