/** Verbosity: more words for the same result. A judge that likes long answers pays for it, users read it. */
import { fewestCases, type Gate, type GatedAttempt, type GatedCase, lookAt, unmeasured } from './gate.ts';
import { atEqualSuccess, isRise, rise } from './paired.ts';
import { wordsOf } from './words.ts';

const name = 'length';
/** A word or two more is no trick, however short the answers are. */
const fewestWords = 2;

const lengthOf = ({ answer }: GatedAttempt): number => answer.said.reduce((sum, text) => sum + wordsOf(text).length, 0);

/** `limit`: growth that is tolerated, e.g. 0.3. */
export function lengthGate(cases: readonly GatedCase[], limit: number): Gate {
  const found = rise(atEqualSuccess(cases), lengthOf);
  if (found === null || found.n < fewestCases)
    return unmeasured(name, limit, 'Too few cases came out alike to compare how long the answers are.');
  const { baseline, candidate, n } = found;
  const fails = candidate > baseline * (1 + limit) && candidate - baseline >= fewestWords && isRise(found);
  return {
    ...{ name, verdict: fails ? 'fail' : 'pass', baseline, candidate, limit },
    reason: `Answers have ${candidate.toFixed(1)} words where the baseline’s have ${baseline.toFixed(1)}, over ${n} cases that came out alike${fails ? `: more than ${limit * 100}% longer for the same result` : ''}.`,
    look: fails ? lookAt(cases, (played) => lengthOf(played) > baseline * (1 + limit)) : [],
  };
}
