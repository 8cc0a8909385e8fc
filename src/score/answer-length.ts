/**
 * A rule: answers are as long as they should be, in words (runs of letters and digits; a Chinese, Japanese or Thai letter is
 * one by itself) or in characters. Outside the limits the worth falls in proportion: half the minimum, or twice the maximum, is
 * worth one half.
 */
import { byAnswer, kept } from './answer-rule.ts';
import type { ComputingScorer } from './scorer.ts';

export type LengthRule = { readonly min?: number; readonly max?: number; readonly unit?: 'words' | 'characters' };

const words = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}_'’-]+/gu;
const countOf = (text: string, unit: 'words' | 'characters'): number =>
  unit === 'characters' ? [...text].length : (text.match(words)?.length ?? 0);

export function answerLength({ min = 1, max = Number.POSITIVE_INFINITY, unit = 'words' }: LengthRule): ComputingScorer {
  if (!(min >= 0) || !(max >= min) || (min <= 1 && max === Number.POSITIVE_INFINITY))
    throw new Error(
      `answerLength goes from ${min} to ${max} ${unit}; give a min, a max, or both, the second not smaller.`,
    );
  return {
    name: 'length',
    version: JSON.stringify(['answer-length', 1, min, max === Number.POSITIVE_INFINITY ? null : max, unit]),
    inProcess: true,
    score: (input) =>
      byAnswer(input, ({ text }) => {
        const count = countOf(text, unit);
        if (count < min) return { worth: count / min, why: `${count} ${unit}, fewer than ${min}` };
        return count > max ? { worth: max / count, why: `${count} ${unit}, more than ${max}` } : kept;
      }),
  };
}
