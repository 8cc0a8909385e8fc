/**
 * A figure that the agent's file computes of each conversation's signals: users are compared by their means, as in outcome.ts. It fails
 * where the candidate's users are certainly worse off and, as measured, beyond the limit.
 */
import { userEvents } from '../../collect/signal.ts';
import { isWorse, meanOf } from '../evidence.ts';
import { namesIn, parseExpression, valueWith } from '../expression.ts';
import type { Sample } from '../slice.ts';
import { type Both, type Check, type End, figures, tooFew, words } from './check.ts';
import type { DeclaredCheck, SignalsCheck } from './declared.ts';

export function signals({ name, needed, signals: text, ...limit }: SignalsCheck): Check<Both<Sample>> {
  const parsed = parseExpression(text);
  if ('problem' in parsed) throw new Error(`The expression of check ${name} ${parsed.problem}.`); // settings are parsed
  return {
    name,
    measure(sides) {
      return sides.signals(namesIn(parsed), (of) => valueWith(parsed, new Map([...undone, ...of])));
    },
    judge(sides, { minUnits }, alpha) {
      const counts = { baseline: sides.baseline.n, candidate: sides.candidate.n };
      if (Math.min(counts.baseline, counts.candidate) < minUnits)
        return [{ name, needed, end: 'unmeasured', reason: tooFew(`users with ${name}`, counts, minUnits) }];
      const sign = limit.better === 'higher' ? 1 : -1;
      const isBeyond = beyond(meanOf(sides.baseline), meanOf(sides.candidate), limit);
      const isCertain = isWorse(turned(sides.baseline, sign), turned(sides.candidate, sign), minUnits * 4, alpha);
      const end: End = !isBeyond ? 'pass' : isCertain ? 'fail' : 'inconclusive';
      return [{ name, needed, end, reason: `${figures(name, sides)}; ${words(end, limitWords(limit))}` }];
    },
  };
}

type Limit = Pick<DeclaredCheck, 'ratio' | 'better'>;

/** Times and parts of nothing, and of less than nothing, mean nothing: there any worse is too much. */
export function beyond(baseline: number, candidate: number, { ratio, better }: Limit): boolean {
  const times = baseline > 0 ? ratio : 1;
  return better === 'lower' ? candidate > baseline * times : candidate * times < baseline;
}

export const limitWords = ({ ratio, better }: Limit): string =>
  better === 'lower' ? `more than ${ratio} × the baseline’s` : `less than the baseline’s ÷ ${ratio}`;

const turned = ({ n, sum, squares }: Sample, sign: 1 | -1): Sample => ({ n, sum: sign * sum, squares });

/** What users may do with an answer; nobody says that they did not. */
const undone = userEvents.map((name) => [name, 0] as const);
