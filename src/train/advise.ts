/**
 * Which recipe fits the data there is: fewer than 2,000 pairs → GRPO, 5,000–10,000 → DPO, more than 10,000 → RLAIF or RFT. What
 * lies between, what is left where nobody can practise, and what a method cannot do without, is decided here too, and every decision comes with its
 * sentence. Pure: the same facts, the same advice.
 */

import { counted } from '../terminal.ts';
import type { RecipeName } from './recipe-names.ts';

export type DataFacts = {
  /** Preference pairs with a gap of 0.2 or more. */
  readonly pairs: number;
  /** Examples of quality ≥ 0.8. */
  readonly examples: number;
  /** Whether there is an environment or grader to practise against. */
  readonly environment: boolean;
  /** Share of the model's answers whose format and tool calls can be read, where measured. */
  readonly validFormat?: number;
  /** Success of the starting model on validation tasks, where measured. */
  readonly success?: number;
};

export type Advice = {
  /** null: nothing can be trained from this. */
  readonly recipe: RecipeName | null;
  readonly reasons: readonly string[];
};

/** Below this share of readable answers, practice mostly punishes syntax. */
const wantedFormat = 0.9;

export function adviseRecipe(facts: DataFacts): Advice {
  const { examples, environment } = facts;
  const reasons: string[] = [];
  const main = mainMethod(facts, reasons);
  if (main === null) return { recipe: null, reasons };

  const readable = facts.validFormat;
  const needsForm = readable !== undefined && readable < wantedFormat;
  if (needsForm && examples > 0) {
    reasons.push(
      `Only ${percent(readable)} of the answers can be read, so SFT on ${counted(examples, 'example')} of quality 0.8 or more comes first: format and tool syntax before policy.`,
    );
    return { recipe: main === 'dpo' || main === 'sft-dpo' ? 'sft-dpo' : main === 'sft' ? 'sft' : 'sft-grpo', reasons };
  }
  if (needsForm)
    reasons.push(
      `Only ${percent(readable)} of the answers can be read and there is no good example to learn the format from; expect a slow start.`,
    );
  if (environment && main === 'grpo' && facts.success !== undefined && facts.success < 0.02) {
    reasons.push(
      `The model solves ${percent(facts.success)} of the tasks: groups where nobody succeeds teach nothing. ` +
        (examples > 0 ? 'SFT comes first.' : 'Add examples, or easier tasks.'),
    );
    if (examples > 0) return { recipe: 'sft-grpo', reasons };
  }
  if (main === 'grpo' && examples > 0) {
    reasons.push(
      `First SFT on ${counted(examples, 'example')} of quality 0.8 or more: what good conversations show need not be found by trying.`,
    );
    return { recipe: 'sft-grpo', reasons };
  }
  return { recipe: main, reasons };
}

/** Fewer pairs than this are anecdotes. */
const fewPairs = 100;

function mainMethod(
  { pairs, examples, environment }: DataFacts,
  reasons: string[],
): 'grpo' | 'dpo' | 'rft' | 'sft' | 'sft-dpo' | null {
  const have = `There ${pairs === 1 ? 'is' : 'are'} ${counted(pairs, 'preference pair')}`;
  if (pairs > 10_000) {
    if (environment) {
      reasons.push(
        `${have}, more than 10,000: enough for RLAIF or RFT. RFT is chosen, since there is an environment whose reward can be read directly and no reward model has to be trained first.`,
      );
      return 'rft';
    }
    reasons.push(
      `${have}, more than 10,000: enough for RLAIF or RFT, but both must play, and there is no environment. DPO uses the pairs as they are.`,
    );
    return 'dpo';
  }
  if (pairs >= 5_000) {
    reasons.push(`${have}, between 5,000 and 10,000: DPO learns from them directly and plays nothing.`);
    return 'dpo';
  }
  if (environment) {
    reasons.push(
      pairs < 2_000
        ? `${have}, fewer than 2,000: too few for DPO. There is an environment, so GRPO makes its own comparisons by practising.`
        : `${have}, between 2,000 and 5,000: the rule leaves this open. There is an environment, so GRPO, which does not depend on their number.`,
    );
    return 'grpo';
  }
  if (pairs >= 2_000) {
    reasons.push(
      `${have}, between 2,000 and 5,000, and no environment to practise in: DPO, with a close look at the evaluation.`,
    );
    return 'dpo';
  }
  if (examples > 0 && pairs >= fewPairs) {
    reasons.push(
      `${have}, fewer than 2,000, and no environment to practise in: SFT on ${counted(examples, 'example')} of quality 0.8 or more, then DPO on the pairs, which are too few to carry it alone.`,
    );
    return 'sft-dpo';
  }
  if (examples > 0) {
    reasons.push(
      `${have}, fewer than 2,000, which asks for GRPO; but GRPO must practise and there is no environment. SFT on ${counted(examples, 'example')} of quality 0.8 or more is what is left.`,
    );
    return 'sft';
  }
  if (pairs >= fewPairs) {
    reasons.push(
      `${have}, no environment and no example of quality 0.8 or more: DPO, with a close look at the evaluation.`,
    );
    return 'dpo';
  }
  reasons.push(`${have}, no environment and no example of quality 0.8 or more: there is nothing to train on yet.`);
  return null;
}

const percent = (share: number): string => `${Math.round(share * 100)}%`;
