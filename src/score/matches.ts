/**
 * A rule: the answer matches a regular expression, or does not (`not`). The expression runs for a limited time; one that goes
 * over an answer again and again fails, and the conversation stays unscored until the expression is mended.
 */
import { broken, byAnswer, kept } from './answer-rule.ts';
import type { ComputingScorer } from './scorer.ts';
import { testPattern } from './test-pattern.ts';

const limitMs = 500;

export function matches(expression: RegExp, { not = false }: { readonly not?: boolean } = {}): ComputingScorer {
  // A state between calls (g, y) would make the second answer depend on the first.
  const { source, flags } = expression;
  const pattern = new RegExp(source, flags.replace(/[gy]/g, ''));
  return {
    name: not ? 'does not match' : 'matches',
    version: JSON.stringify(['matches', 1, pattern.source, pattern.flags, not]),
    inProcess: true,
    score: (input) =>
      byAnswer(input, ({ text }) => {
        const isMatch = testPattern(pattern, text, limitMs);
        if (isMatch !== not) return kept;
        return broken(not ? `matches ${pattern}` : `does not match ${pattern}`);
      }),
  };
}
